//! What an attacker inside tries, as a table of attempts.
