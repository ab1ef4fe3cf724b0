# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_redoma_global_optspecs
    string join \n q/quiet h/help V/version
end

function __fish_redoma_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_redoma_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_redoma_using_subcommand
    set -l cmd (__fish_redoma_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c redoma -n "__fish_redoma_needs_command" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_needs_command" -s V -l version -d 'Print version'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "run" -d 'Run a command, or a known agent by its name alone, under the bell'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "doctor" -d 'Say what this machine can enforce, and what is missing'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "why" -d 'Say whether something is allowed, by which rule, and the smallest change that would decide otherwise'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "allow" -d 'Allow TARGET in the policy file; comments stay'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "deny" -d 'Deny TARGET in the policy file; comments stay'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "policy" -d 'Make, show, check and trust policies'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "changes" -d 'See and take over what a session with an overlay workspace changed'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "undo" -d 'Bring the project back to how it was before a session'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "sessions" -d 'List the sessions, newest first'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "log" -d 'Show what a session did'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "net" -d 'Show what went over the network'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "proxy" -d 'Serve the gateway by itself, as an HTTP and SOCKS 5 proxy, until it is interrupted'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "image" -d 'Keep the images that sandboxes are made from'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "audit" -d 'Keep the record: check it, or remove what is old'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "sandbox" -d 'Make sandboxes, run commands in them, freeze, fork and throw them away'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "snapshot" -d 'List, compare and remove snapshots'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "up" -d 'Start a group of services, and wait until they work'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "down" -d 'Stop a group of services, last first, and remove its sandboxes'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "ps" -d 'List the services of a group'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "logs" -d 'Show what the services of a group wrote'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "preview" -d 'Run each branch of a repository in sandboxes of its own'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "templates" -d 'List what sandboxes and services can be made from by name'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "reap" -d 'Remove sandboxes whose time is over'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "pause-idle" -d 'Pause sandboxes in which no command began or ended for a while; the next command lets them go on'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "redteam" -d 'Attack the boundary from inside, harmlessly, and show what stopped each attempt'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "completions" -d 'Print the completion script of a shell'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "man" -d 'Print a manual page'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "version" -d 'Print the version'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "keeper" -d 'Be the keeper of a sandbox; started by the others'
complete -c redoma -n "__fish_redoma_needs_command" -f -a "guest" -d 'Do what has to be done inside a container; called by the oci driver'
complete -c redoma -n "__fish_redoma_using_subcommand run" -l policy -d 'Use this file in place of the project\'s redoma.toml' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand run" -l profile -d 'Begin from this profile' -r
complete -c redoma -n "__fish_redoma_using_subcommand run" -l agent -d 'Add what this agent needs' -r
complete -c redoma -n "__fish_redoma_using_subcommand run" -l net -d 'The network, where no rule decides' -r -f -a "none\t'No network at all'
deny\t'Only what a rule allows'
ask\t'Ask the user'
allow\t'Everything but what a rule denies'"
complete -c redoma -n "__fish_redoma_using_subcommand run" -l allow -d 'Allow connections to hosts, with commas between them: `example.com`, `*.example.com:8443`, `localhost:5432`, or what a tool needs: `npm`, `pip`, `cargo`, `git`, …' -r
complete -c redoma -n "__fish_redoma_using_subcommand run" -l read -d 'Allow reading a path' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand run" -l write -d 'Allow reading and writing a path' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand run" -l deny -d 'Deny a path or pattern, whatever else allows it' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand run" -l env -d 'Pass a variable, or set it' -r
complete -c redoma -n "__fish_redoma_using_subcommand run" -l workspace -d 'Work on the project itself, or on a layer above it' -r -f -a "direct\t'The project itself'
overlay\t'A layer above it, until `redoma changes apply`'"
complete -c redoma -n "__fish_redoma_using_subcommand run" -l memory -d 'Limit memory, such as 1GiB' -r
complete -c redoma -n "__fish_redoma_using_subcommand run" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c redoma -n "__fish_redoma_using_subcommand run" -l pids -d 'Limit processes and threads' -r
complete -c redoma -n "__fish_redoma_using_subcommand run" -l time -d 'End everything after this time, such as 30m' -r
complete -c redoma -n "__fish_redoma_using_subcommand run" -l tier -d 'Build exactly this tier, or refuse' -r -f -a "full\t'Namespaces, Landlock and seccomp'
landlock\t'Landlock and seccomp'"
complete -c redoma -n "__fish_redoma_using_subcommand run" -l report -d 'Write a JSON report of the session to this file' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand run" -l undo -d 'Keep what `redoma undo` needs'
complete -c redoma -n "__fish_redoma_using_subcommand run" -l no-undo -d 'Keep nothing for `redoma undo`'
complete -c redoma -n "__fish_redoma_using_subcommand run" -l json -d 'Print what would be said at the end as JSON on standard error'
complete -c redoma -n "__fish_redoma_using_subcommand run" -l capture -d 'Keep what goes over the network, for `redoma net export --format pcapng`'
complete -c redoma -n "__fish_redoma_using_subcommand run" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand doctor" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand doctor" -l gc -d 'Look for what a killed run could have left behind, and remove it'
complete -c redoma -n "__fish_redoma_using_subcommand doctor" -l fix-hints -d 'Print only the commands that mend what is missing'
complete -c redoma -n "__fish_redoma_using_subcommand doctor" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand why" -l tier -d 'The tier to answer for; without it, what this machine has' -r -f -a "full\t'Namespaces, Landlock and seccomp'
landlock\t'Landlock and seccomp'"
complete -c redoma -n "__fish_redoma_using_subcommand why" -l policy -d 'Use this file in place of the project\'s redoma.toml' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand why" -l profile -d 'Begin from this profile' -r
complete -c redoma -n "__fish_redoma_using_subcommand why" -l agent -d 'Add what this agent needs' -r
complete -c redoma -n "__fish_redoma_using_subcommand why" -l net -d 'The network, where no rule decides' -r -f -a "none\t'No network at all'
deny\t'Only what a rule allows'
ask\t'Ask the user'
allow\t'Everything but what a rule denies'"
complete -c redoma -n "__fish_redoma_using_subcommand why" -l allow -d 'Allow connections to hosts, with commas between them: `example.com`, `*.example.com:8443`, `localhost:5432`, or what a tool needs: `npm`, `pip`, `cargo`, `git`, …' -r
complete -c redoma -n "__fish_redoma_using_subcommand why" -l read -d 'Allow reading a path' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand why" -l write -d 'Allow reading and writing a path' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand why" -l deny -d 'Deny a path or pattern, whatever else allows it' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand why" -l env -d 'Pass a variable, or set it' -r
complete -c redoma -n "__fish_redoma_using_subcommand why" -l workspace -d 'Work on the project itself, or on a layer above it' -r -f -a "direct\t'The project itself'
overlay\t'A layer above it, until `redoma changes apply`'"
complete -c redoma -n "__fish_redoma_using_subcommand why" -l memory -d 'Limit memory, such as 1GiB' -r
complete -c redoma -n "__fish_redoma_using_subcommand why" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c redoma -n "__fish_redoma_using_subcommand why" -l pids -d 'Limit processes and threads' -r
complete -c redoma -n "__fish_redoma_using_subcommand why" -l time -d 'End everything after this time, such as 30m' -r
complete -c redoma -n "__fish_redoma_using_subcommand why" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand why" -l undo -d 'Keep what `redoma undo` needs'
complete -c redoma -n "__fish_redoma_using_subcommand why" -l no-undo -d 'Keep nothing for `redoma undo`'
complete -c redoma -n "__fish_redoma_using_subcommand why" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand why" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand allow" -l project -d 'Change the project\'s redoma.toml (the default in a project)'
complete -c redoma -n "__fish_redoma_using_subcommand allow" -l user -d 'Change the user\'s policy'
complete -c redoma -n "__fish_redoma_using_subcommand allow" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand allow" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand deny" -l project -d 'Change the project\'s redoma.toml (the default in a project)'
complete -c redoma -n "__fish_redoma_using_subcommand deny" -l user -d 'Change the user\'s policy'
complete -c redoma -n "__fish_redoma_using_subcommand deny" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand deny" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and not __fish_seen_subcommand_from init show check schema trust diff profiles agents" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and not __fish_seen_subcommand_from init show check schema trust diff profiles agents" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and not __fish_seen_subcommand_from init show check schema trust diff profiles agents" -f -a "init" -d 'Write a commented policy to begin from'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and not __fish_seen_subcommand_from init show check schema trust diff profiles agents" -f -a "show" -d 'Show the policy files, or what they come to'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and not __fish_seen_subcommand_from init show check schema trust diff profiles agents" -f -a "check" -d 'Check a policy file'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and not __fish_seen_subcommand_from init show check schema trust diff profiles agents" -f -a "schema" -d 'Print the JSON schema of policy files, for editors'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and not __fish_seen_subcommand_from init show check schema trust diff profiles agents" -f -a "trust" -d 'Trust the exact content of a policy file, so that it may widen'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and not __fish_seen_subcommand_from init show check schema trust diff profiles agents" -f -a "diff" -d 'Show what two policies do differently'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and not __fish_seen_subcommand_from init show check schema trust diff profiles agents" -f -a "profiles" -d 'List the built-in profiles'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and not __fish_seen_subcommand_from init show check schema trust diff profiles agents" -f -a "agents" -d 'List the agents with a preset'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from init" -l profile -d 'Begin from this profile' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from init" -l agent -d 'Add the preset of this agent' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from init" -l user -d 'Write the user\'s policy, not the project\'s redoma.toml'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from init" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l policy -d 'Use this file in place of the project\'s redoma.toml' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l profile -d 'Begin from this profile' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l agent -d 'Add what this agent needs' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l net -d 'The network, where no rule decides' -r -f -a "none\t'No network at all'
deny\t'Only what a rule allows'
ask\t'Ask the user'
allow\t'Everything but what a rule denies'"
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l allow -d 'Allow connections to hosts, with commas between them: `example.com`, `*.example.com:8443`, `localhost:5432`, or what a tool needs: `npm`, `pip`, `cargo`, `git`, …' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l read -d 'Allow reading a path' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l write -d 'Allow reading and writing a path' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l deny -d 'Deny a path or pattern, whatever else allows it' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l env -d 'Pass a variable, or set it' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l workspace -d 'Work on the project itself, or on a layer above it' -r -f -a "direct\t'The project itself'
overlay\t'A layer above it, until `redoma changes apply`'"
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l memory -d 'Limit memory, such as 1GiB' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l pids -d 'Limit processes and threads' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l time -d 'End everything after this time, such as 30m' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l resolved -d 'Show what the layers come to, each line with where it comes from'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l undo -d 'Keep what `redoma undo` needs'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -l no-undo -d 'Keep nothing for `redoma undo`'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from schema" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from trust" -s y -l yes -d 'Do not ask'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from trust" -l forget -d 'Trust it no longer'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from trust" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from trust" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l policy -d 'Use this file in place of the project\'s redoma.toml' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l profile -d 'Begin from this profile' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l agent -d 'Add what this agent needs' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l net -d 'The network, where no rule decides' -r -f -a "none\t'No network at all'
deny\t'Only what a rule allows'
ask\t'Ask the user'
allow\t'Everything but what a rule denies'"
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l allow -d 'Allow connections to hosts, with commas between them: `example.com`, `*.example.com:8443`, `localhost:5432`, or what a tool needs: `npm`, `pip`, `cargo`, `git`, …' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l read -d 'Allow reading a path' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l write -d 'Allow reading and writing a path' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l deny -d 'Deny a path or pattern, whatever else allows it' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l env -d 'Pass a variable, or set it' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l workspace -d 'Work on the project itself, or on a layer above it' -r -f -a "direct\t'The project itself'
overlay\t'A layer above it, until `redoma changes apply`'"
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l memory -d 'Limit memory, such as 1GiB' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l pids -d 'Limit processes and threads' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l time -d 'End everything after this time, such as 30m' -r
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l undo -d 'Keep what `redoma undo` needs'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -l no-undo -d 'Keep nothing for `redoma undo`'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from profiles" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from profiles" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from profiles" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from agents" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from agents" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand policy; and __fish_seen_subcommand_from agents" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and not __fish_seen_subcommand_from list diff apply discard" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and not __fish_seen_subcommand_from list diff apply discard" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and not __fish_seen_subcommand_from list diff apply discard" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and not __fish_seen_subcommand_from list diff apply discard" -a "list" -d 'List what changed'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and not __fish_seen_subcommand_from list diff apply discard" -a "diff" -d 'Show the changes as a unified diff'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and not __fish_seen_subcommand_from list diff apply discard" -a "apply" -d 'Take changes over into the project'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and not __fish_seen_subcommand_from list diff apply discard" -a "discard" -d 'Throw the changes away'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from diff" -l path -d 'Only this path or pattern, relative to the project; may be repeated' -r
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from diff" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from apply" -l path -d 'Only this path or pattern, relative to the project; may be repeated' -r
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from apply" -l force -d 'Overwrite this path although the project changed meanwhile; may be repeated' -r
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from apply" -s y -l yes -d 'Do not ask'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from apply" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from apply" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from discard" -s y -l yes -d 'Do not ask'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from discard" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand changes; and __fish_seen_subcommand_from discard" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand undo" -s n -l dry-run -d 'Only show what would be done'
complete -c redoma -n "__fish_redoma_using_subcommand undo" -s y -l yes -d 'Do not ask'
complete -c redoma -n "__fish_redoma_using_subcommand undo" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand undo" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand undo" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sessions" -s n -l limit -d 'Print at most this many' -r
complete -c redoma -n "__fish_redoma_using_subcommand sessions" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sessions" -l verify -d 'Check the whole record instead: order, hashes and signatures'
complete -c redoma -n "__fish_redoma_using_subcommand sessions" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sessions" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand log" -s f -l follow -d 'Go on printing until the session ends'
complete -c redoma -n "__fish_redoma_using_subcommand log" -l json -d 'Print the record\'s lines as they are'
complete -c redoma -n "__fish_redoma_using_subcommand log" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand log" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand net; and not __fish_seen_subcommand_from flows show export" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand net; and not __fish_seen_subcommand_from flows show export" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand net; and not __fish_seen_subcommand_from flows show export" -f -a "flows" -d 'List the connections of a session: who made them, where to, and whether they were looked into'
complete -c redoma -n "__fish_redoma_using_subcommand net; and not __fish_seen_subcommand_from flows show export" -f -a "show" -d 'Show one connection: process, decision, TLS, and each request with its headers and the beginning of its body'
complete -c redoma -n "__fish_redoma_using_subcommand net; and not __fish_seen_subcommand_from flows show export" -f -a "export" -d 'Write what went over the network in a form that other programs read'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from flows" -l host -d 'Only those to hosts like this, such as `*.example.com`' -r
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from flows" -s f -l follow -d 'Go on printing until the session ends'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from flows" -l blocked -d 'Only those that were refused or cut off'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from flows" -l opaque -d 'Only those that passed unseen'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from flows" -l inspected -d 'Only those that were looked into'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from flows" -l json -d 'Print JSON, one connection a line'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from flows" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from flows" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from show" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from export" -l format -d 'The form' -r -f -a "har\t'HTTP Archive 1.2'
jsonl\t'The record\'s own lines about the network'
pcapng\t'What `redoma run --capture` kept, with the keys, for Wireshark'"
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from export" -s o -l output -d 'Write into this file, which only its owner may read, and not to standard output' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from export" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand net; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l listen -d 'Where to listen' -r
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l ca-out -d 'Write the certificate that clients are to trust into this file' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l policy -d 'Use this file in place of the project\'s redoma.toml' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l profile -d 'Begin from this profile' -r
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l agent -d 'Add what this agent needs' -r
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l net -d 'The network, where no rule decides' -r -f -a "none\t'No network at all'
deny\t'Only what a rule allows'
ask\t'Ask the user'
allow\t'Everything but what a rule denies'"
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l allow -d 'Allow connections to hosts, with commas between them: `example.com`, `*.example.com:8443`, `localhost:5432`, or what a tool needs: `npm`, `pip`, `cargo`, `git`, …' -r
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l read -d 'Allow reading a path' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l write -d 'Allow reading and writing a path' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l deny -d 'Deny a path or pattern, whatever else allows it' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l env -d 'Pass a variable, or set it' -r
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l workspace -d 'Work on the project itself, or on a layer above it' -r -f -a "direct\t'The project itself'
overlay\t'A layer above it, until `redoma changes apply`'"
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l memory -d 'Limit memory, such as 1GiB' -r
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l pids -d 'Limit processes and threads' -r
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l time -d 'End everything after this time, such as 30m' -r
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l undo -d 'Keep what `redoma undo` needs'
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -l no-undo -d 'Keep nothing for `redoma undo`'
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand proxy" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand image; and not __fish_seen_subcommand_from pull ls rm import prune" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand image; and not __fish_seen_subcommand_from pull ls rm import prune" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand image; and not __fish_seen_subcommand_from pull ls rm import prune" -f -a "pull" -d 'Fetch an image from a registry, verified: every blob by digest and size, every layer by its content'
complete -c redoma -n "__fish_redoma_using_subcommand image; and not __fish_seen_subcommand_from pull ls rm import prune" -f -a "ls" -d 'List the images that are here'
complete -c redoma -n "__fish_redoma_using_subcommand image; and not __fish_seen_subcommand_from pull ls rm import prune" -f -a "rm" -d 'Forget images; what only they have is freed by `redoma image prune`'
complete -c redoma -n "__fish_redoma_using_subcommand image; and not __fish_seen_subcommand_from pull ls rm import prune" -f -a "import" -d 'Take in an image that is no registry\'s: a root file system, what `docker save` writes, or an OCI layout'
complete -c redoma -n "__fish_redoma_using_subcommand image; and not __fish_seen_subcommand_from pull ls rm import prune" -f -a "prune" -d 'Free what no image, sandbox or snapshot refers to'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from pull" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from pull" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from pull" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from ls" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from ls" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from rm" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from rm" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from import" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from import" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from prune" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from prune" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand image; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand audit; and not __fish_seen_subcommand_from purge verify" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand audit; and not __fish_seen_subcommand_from purge verify" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand audit; and not __fish_seen_subcommand_from purge verify" -f -a "purge" -d 'Remove the sessions that are older than the policy keeps them; a signed line of each stays'
complete -c redoma -n "__fish_redoma_using_subcommand audit; and not __fish_seen_subcommand_from purge verify" -f -a "verify" -d 'Check order, hashes and signatures of the whole record'
complete -c redoma -n "__fish_redoma_using_subcommand audit; and __fish_seen_subcommand_from purge" -l older-than -d 'Keep what is younger than this, such as 30d, whatever the policy says' -r
complete -c redoma -n "__fish_redoma_using_subcommand audit; and __fish_seen_subcommand_from purge" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand audit; and __fish_seen_subcommand_from purge" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand audit; and __fish_seen_subcommand_from purge" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand audit; and __fish_seen_subcommand_from verify" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand audit; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand audit; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "create" -d 'Make a sandbox'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "exec" -d 'Run a command in a sandbox'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "shell" -d 'Open a shell in a sandbox'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "ls" -d 'List sandboxes'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "info" -d 'Say all about a sandbox'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "rm" -d 'End sandboxes and remove all of them'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "logs" -d 'Show what detached commands of a sandbox wrote'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "stats" -d 'Show what a sandbox uses'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "history" -d 'List the commands that ran in a sandbox'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "pause" -d 'Stop every process of a sandbox where it stands'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "resume" -d 'Let a paused sandbox go on'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "cp" -d 'Copy files into a sandbox or out of it'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "snapshot" -d 'Freeze the file system of a sandbox under a name'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "fork" -d 'Make sandboxes from a snapshot; limits, rules and mounts are as they were, published ports are not'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "checkpoint" -d 'Keep every process of a sandbox on disk and end them'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and not __fish_seen_subcommand_from create exec shell ls info rm logs stats history pause resume cp snapshot fork checkpoint restore" -f -a "restore" -d 'Bring back what a checkpoint keeps'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l name -d 'Its name; without one it gets one' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l net -d 'The network, where no rule decides' -r -f -a "none\t'No network at all'
deny\t'Only what a rule allows'
ask\t'Ask the user'
allow\t'Everything but what a rule denies'"
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l allow -d 'Allow connections to hosts, or what a tool needs: `npm`, `pip`, `cargo`, `git`, …' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l policy -d 'Put the sandbox under this policy file' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l publish -d 'Let a port of this machine\'s loopback lead to a port inside' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l mount -d 'Show a folder or file of this machine inside; `:ro` read-only, `:overlay` with changes kept aside' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l env -d 'Pass a variable to every command, or set it' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l workdir -d 'Where commands run' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l user -d 'Who commands are' -r -f -a "root\t'User 0 inside, who is you and nobody else outside'
me\t'You, under your own number'"
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l memory -d 'Limit memory, such as 1GiB' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l pids -d 'Limit processes and threads' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l disk -d 'Limit what it changes on its file system, such as 4GiB' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l time -d 'End it this long after it was made, such as 2h' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l template -d 'Begin from a template; `redoma templates` lists them' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l driver -d 'What makes the sandbox' -r -f -a "native\t'This machine\'s kernel'
oci\t'Docker or Podman'
mock\t'Nothing: for tests'"
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l engine-host -d 'The engine of the oci driver: a socket, `ssh://…` or `tcp://…`' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from exec" -l timeout -d 'End the command and all it started after this time' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from exec" -l workdir -d 'Where it runs' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from exec" -l env -d 'Pass a variable, or set it' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from exec" -s i -l interactive -d 'Pass standard input on'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from exec" -s t -l tty -d 'Give the command a terminal'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from exec" -s d -l detach -d 'Leave it running, with its output in the sandbox\'s log'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from exec" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from exec" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from shell" -l workdir -d 'Where it runs' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from shell" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from shell" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from ls" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from ls" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from info" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from info" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from info" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from rm" -l all -d 'All there are'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from rm" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from rm" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from logs" -s f -l follow -d 'Go on as more comes'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from logs" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from logs" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from stats" -s f -l follow -d 'Go on every second'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from stats" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from stats" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from stats" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from history" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from history" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from history" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from pause" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from pause" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from resume" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from resume" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from cp" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from cp" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from cp" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from snapshot" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from snapshot" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from snapshot" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from fork" -l name -d 'A name for a sandbox; several make several' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from fork" -l publish -d 'Let a port of this machine\'s loopback lead to a port inside' -r
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from fork" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from fork" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from fork" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from checkpoint" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from checkpoint" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from checkpoint" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from restore" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from restore" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand sandbox; and __fish_seen_subcommand_from restore" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and not __fish_seen_subcommand_from ls rm prune diff" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and not __fish_seen_subcommand_from ls rm prune diff" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and not __fish_seen_subcommand_from ls rm prune diff" -f -a "ls" -d 'List snapshots'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and not __fish_seen_subcommand_from ls rm prune diff" -f -a "rm" -d 'Remove snapshots; sandboxes that stand on them stay as they are'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and not __fish_seen_subcommand_from ls rm prune diff" -f -a "prune" -d 'Remove snapshots that are older than something'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and not __fish_seen_subcommand_from ls rm prune diff" -f -a "diff" -d 'Show what differs between two snapshots, or sandboxes as they are now'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from ls" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from ls" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from rm" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from rm" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from prune" -l max-age -d 'How old they may be, such as 7d' -r
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from prune" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from prune" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from diff" -l content -d 'Show how texts differ as well'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from diff" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from diff" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand snapshot; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand up" -s f -l file -d 'The file; without it, the one in the current folder' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand up" -l env -d 'Let the file use a variable as `${NAME}`, or set it' -r
complete -c redoma -n "__fish_redoma_using_subcommand up" -l driver -d 'What makes the sandbox' -r -f -a "native\t'This machine\'s kernel'
oci\t'Docker or Podman'
mock\t'Nothing: for tests'"
complete -c redoma -n "__fish_redoma_using_subcommand up" -l engine-host -d 'The engine of the oci driver: a socket, `ssh://…` or `tcp://…`' -r
complete -c redoma -n "__fish_redoma_using_subcommand up" -l recreate -d 'Make what is not as the file says anew'
complete -c redoma -n "__fish_redoma_using_subcommand up" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand up" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand up" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand down" -s f -l file -d 'The file that describes it; without it, the one in the current folder' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand down" -l group -d 'Its name, where the file is gone' -r
complete -c redoma -n "__fish_redoma_using_subcommand down" -l keep -d 'Keep the sandboxes with what was written in them'
complete -c redoma -n "__fish_redoma_using_subcommand down" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand down" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand down" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand ps" -s f -l file -d 'The file that describes it; without it, the one in the current folder' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand ps" -l group -d 'Its name, where the file is gone' -r
complete -c redoma -n "__fish_redoma_using_subcommand ps" -s a -l all -d 'Those of all groups'
complete -c redoma -n "__fish_redoma_using_subcommand ps" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand ps" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand ps" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand logs" -s f -l file -d 'The file that describes it; without it, the one in the current folder' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand logs" -l group -d 'Its name, where the file is gone' -r
complete -c redoma -n "__fish_redoma_using_subcommand logs" -s F -l follow -d 'Go on as more comes'
complete -c redoma -n "__fish_redoma_using_subcommand logs" -l json -d 'Print a JSON line for each line'
complete -c redoma -n "__fish_redoma_using_subcommand logs" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand logs" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and not __fish_seen_subcommand_from up status down ls" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and not __fish_seen_subcommand_from up status down ls" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and not __fish_seen_subcommand_from up status down ls" -f -a "up" -d 'Start the branch that is checked out here'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and not __fish_seen_subcommand_from up status down ls" -f -a "status" -d 'Say what runs for a branch, and where'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and not __fish_seen_subcommand_from up status down ls" -f -a "down" -d 'Remove the preview of a branch, also of one that is gone'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and not __fish_seen_subcommand_from up status down ls" -f -a "ls" -d 'List the previews of this repository'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from up" -l env -d 'Let the services file use a variable as `${NAME}`, or set it' -r
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from up" -l driver -d 'What makes the sandbox' -r -f -a "native\t'This machine\'s kernel'
oci\t'Docker or Podman'
mock\t'Nothing: for tests'"
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from up" -l engine-host -d 'The engine of the oci driver: a socket, `ssh://…` or `tcp://…`' -r
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from up" -l direct -d 'Let what services change in the tree happen to it'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from up" -l recreate -d 'Make what is not as the file says anew'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from up" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from up" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from up" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from status" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from down" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from down" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from down" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from ls" -s a -l all -d 'Those of all repositories'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from ls" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from ls" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand preview; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand templates" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand templates" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand templates" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand reap" -l max-age -d 'Also those that are older than this, such as 7d' -r
complete -c redoma -n "__fish_redoma_using_subcommand reap" -l dry-run -d 'Only say which'
complete -c redoma -n "__fish_redoma_using_subcommand reap" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand reap" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand reap" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand pause-idle" -l max-idle -d 'How long that may be' -r
complete -c redoma -n "__fish_redoma_using_subcommand pause-idle" -l serving -d 'Also services, and what has a published port: nothing but a command wakes those'
complete -c redoma -n "__fish_redoma_using_subcommand pause-idle" -l dry-run -d 'Only say which'
complete -c redoma -n "__fish_redoma_using_subcommand pause-idle" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand pause-idle" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand pause-idle" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand redteam" -l tier -d 'The tier to attack; without it, what this machine has' -r -f -a "full\t'Namespaces, Landlock and seccomp'
landlock\t'Landlock and seccomp'"
complete -c redoma -n "__fish_redoma_using_subcommand redteam" -l attempt -d 'Make one attempt, here and now; used inside' -r
complete -c redoma -n "__fish_redoma_using_subcommand redteam" -l stage -d 'What was set up for the attempt' -r
complete -c redoma -n "__fish_redoma_using_subcommand redteam" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand redteam" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand redteam" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redoma -n "__fish_redoma_using_subcommand completions" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand completions" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand man" -l out -d 'Write the pages of all commands into this folder instead' -r -F
complete -c redoma -n "__fish_redoma_using_subcommand man" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand man" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand version" -l json -d 'Print JSON'
complete -c redoma -n "__fish_redoma_using_subcommand version" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand version" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand keeper" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand keeper" -s h -l help -d 'Print help'
complete -c redoma -n "__fish_redoma_using_subcommand guest" -s q -l quiet -d 'Say nothing beside the answer but errors'
complete -c redoma -n "__fish_redoma_using_subcommand guest" -s h -l help -d 'Print help'
