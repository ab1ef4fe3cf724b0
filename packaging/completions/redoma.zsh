#compdef redoma

autoload -U is-at-least

_redoma() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
":: :_redoma_commands" \
"*::: :->redoma" \
&& ret=0
    case $state in
    (redoma)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:redoma-command-$line[1]:"
        case $line[1] in
            (run)
_arguments "${_arguments_options[@]}" : \
'--policy=[Use this file in place of the project'\''s redoma.toml]:FILE:_files' \
'--profile=[Begin from this profile]:NAME:_default' \
'--agent=[Add what this agent needs]:NAME:_default' \
'--net=[The network, where no rule decides]:MODE:((none\:"No network at all"
deny\:"Only what a rule allows"
ask\:"Ask the user"
allow\:"Everything but what a rule denies"))' \
'*--allow=[Allow connections to hosts, with commas between them\: \`example.com\`, \`*.example.com\:8443\`, \`localhost\:5432\`, or what a tool needs\: \`npm\`, \`pip\`, \`cargo\`, \`git\`, …]:HOST[:PORT],…:_default' \
'*--read=[Allow reading a path]:PATH:_files' \
'*--write=[Allow reading and writing a path]:PATH:_files' \
'*--deny=[Deny a path or pattern, whatever else allows it]:PATH:_files' \
'*--env=[Pass a variable, or set it]:NAME[=VALUE]:_default' \
'--workspace=[Work on the project itself, or on a layer above it]:KIND:((direct\:"The project itself"
overlay\:"A layer above it, until \`redoma changes apply\`"))' \
'--memory=[Limit memory, such as 1GiB]:SIZE:_default' \
'--cpus=[Limit processors, such as 1.5]:N:_default' \
'--pids=[Limit processes and threads]:N:_default' \
'--time=[End everything after this time, such as 30m]:SPAN:_default' \
'--tier=[Build exactly this tier, or refuse]:TIER:((full\:"Namespaces, Landlock and seccomp"
landlock\:"Landlock and seccomp"))' \
'--report=[Write a JSON report of the session to this file]:FILE:_files' \
'--undo[Keep what \`redoma undo\` needs]' \
'(--undo)--no-undo[Keep nothing for \`redoma undo\`]' \
'--json[Print what would be said at the end as JSON on standard error]' \
'--capture[Keep what goes over the network, for \`redoma net export --format pcapng\`]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::command -- The command and its arguments, or the name of an agent:_cmdambivalent' \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'--gc[Look for what a killed run could have left behind, and remove it]' \
'(--json --gc)--fix-hints[Print only the commands that mend what is missing]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(why)
_arguments "${_arguments_options[@]}" : \
'--tier=[The tier to answer for; without it, what this machine has]:TIER:((full\:"Namespaces, Landlock and seccomp"
landlock\:"Landlock and seccomp"))' \
'--policy=[Use this file in place of the project'\''s redoma.toml]:FILE:_files' \
'--profile=[Begin from this profile]:NAME:_default' \
'--agent=[Add what this agent needs]:NAME:_default' \
'--net=[The network, where no rule decides]:MODE:((none\:"No network at all"
deny\:"Only what a rule allows"
ask\:"Ask the user"
allow\:"Everything but what a rule denies"))' \
'*--allow=[Allow connections to hosts, with commas between them\: \`example.com\`, \`*.example.com\:8443\`, \`localhost\:5432\`, or what a tool needs\: \`npm\`, \`pip\`, \`cargo\`, \`git\`, …]:HOST[:PORT],…:_default' \
'*--read=[Allow reading a path]:PATH:_files' \
'*--write=[Allow reading and writing a path]:PATH:_files' \
'*--deny=[Deny a path or pattern, whatever else allows it]:PATH:_files' \
'*--env=[Pass a variable, or set it]:NAME[=VALUE]:_default' \
'--workspace=[Work on the project itself, or on a layer above it]:KIND:((direct\:"The project itself"
overlay\:"A layer above it, until \`redoma changes apply\`"))' \
'--memory=[Limit memory, such as 1GiB]:SIZE:_default' \
'--cpus=[Limit processors, such as 1.5]:N:_default' \
'--pids=[Limit processes and threads]:N:_default' \
'--time=[End everything after this time, such as 30m]:SPAN:_default' \
'--json[Print JSON]' \
'--undo[Keep what \`redoma undo\` needs]' \
'(--undo)--no-undo[Keep nothing for \`redoma undo\`]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':action -- What would be done:(read write exec connect env)' \
':target -- The path, the program, HOST\[\:PORT\] or the variable:_default' \
&& ret=0
;;
(allow)
_arguments "${_arguments_options[@]}" : \
'--project[Change the project'\''s redoma.toml (the default in a project)]' \
'--user[Change the user'\''s policy]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':target -- read\:PATH, write\:PATH, env\:NAME, rule\:TEXT (of a built-in rule), HOST\[\:PORT\] or a tool such as npm (several with commas), localhost\:PORT, or a bare path to read:_default' \
&& ret=0
;;
(deny)
_arguments "${_arguments_options[@]}" : \
'--project[Change the project'\''s redoma.toml (the default in a project)]' \
'--user[Change the user'\''s policy]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':target -- read\:PATH, write\:PATH, env\:NAME, rule\:TEXT (of a built-in rule), HOST\[\:PORT\] or a tool such as npm (several with commas), localhost\:PORT, or a bare path to read:_default' \
&& ret=0
;;
(policy)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_redoma__subcmd__policy_commands" \
"*::: :->policy" \
&& ret=0

    case $state in
    (policy)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:redoma-policy-command-$line[1]:"
        case $line[1] in
            (init)
_arguments "${_arguments_options[@]}" : \
'--profile=[Begin from this profile]:NAME:_default' \
'--agent=[Add the preset of this agent]:NAME:_default' \
'--user[Write the user'\''s policy, not the project'\''s redoma.toml]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--policy=[Use this file in place of the project'\''s redoma.toml]:FILE:_files' \
'--profile=[Begin from this profile]:NAME:_default' \
'--agent=[Add what this agent needs]:NAME:_default' \
'--net=[The network, where no rule decides]:MODE:((none\:"No network at all"
deny\:"Only what a rule allows"
ask\:"Ask the user"
allow\:"Everything but what a rule denies"))' \
'*--allow=[Allow connections to hosts, with commas between them\: \`example.com\`, \`*.example.com\:8443\`, \`localhost\:5432\`, or what a tool needs\: \`npm\`, \`pip\`, \`cargo\`, \`git\`, …]:HOST[:PORT],…:_default' \
'*--read=[Allow reading a path]:PATH:_files' \
'*--write=[Allow reading and writing a path]:PATH:_files' \
'*--deny=[Deny a path or pattern, whatever else allows it]:PATH:_files' \
'*--env=[Pass a variable, or set it]:NAME[=VALUE]:_default' \
'--workspace=[Work on the project itself, or on a layer above it]:KIND:((direct\:"The project itself"
overlay\:"A layer above it, until \`redoma changes apply\`"))' \
'--memory=[Limit memory, such as 1GiB]:SIZE:_default' \
'--cpus=[Limit processors, such as 1.5]:N:_default' \
'--pids=[Limit processes and threads]:N:_default' \
'--time=[End everything after this time, such as 30m]:SPAN:_default' \
'--resolved[Show what the layers come to, each line with where it comes from]' \
'--json[Print JSON]' \
'--undo[Keep what \`redoma undo\` needs]' \
'(--undo)--no-undo[Keep nothing for \`redoma undo\`]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(check)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::file -- The file; without it, every layer that applies here:_files' \
&& ret=0
;;
(schema)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(trust)
_arguments "${_arguments_options[@]}" : \
'-y[Do not ask]' \
'--yes[Do not ask]' \
'(-y --yes)--forget[Trust it no longer]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::file -- The file; without it, the project'\''s redoma.toml:_files' \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
'--policy=[Use this file in place of the project'\''s redoma.toml]:FILE:_files' \
'--profile=[Begin from this profile]:NAME:_default' \
'--agent=[Add what this agent needs]:NAME:_default' \
'--net=[The network, where no rule decides]:MODE:((none\:"No network at all"
deny\:"Only what a rule allows"
ask\:"Ask the user"
allow\:"Everything but what a rule denies"))' \
'*--allow=[Allow connections to hosts, with commas between them\: \`example.com\`, \`*.example.com\:8443\`, \`localhost\:5432\`, or what a tool needs\: \`npm\`, \`pip\`, \`cargo\`, \`git\`, …]:HOST[:PORT],…:_default' \
'*--read=[Allow reading a path]:PATH:_files' \
'*--write=[Allow reading and writing a path]:PATH:_files' \
'*--deny=[Deny a path or pattern, whatever else allows it]:PATH:_files' \
'*--env=[Pass a variable, or set it]:NAME[=VALUE]:_default' \
'--workspace=[Work on the project itself, or on a layer above it]:KIND:((direct\:"The project itself"
overlay\:"A layer above it, until \`redoma changes apply\`"))' \
'--memory=[Limit memory, such as 1GiB]:SIZE:_default' \
'--cpus=[Limit processors, such as 1.5]:N:_default' \
'--pids=[Limit processes and threads]:N:_default' \
'--time=[End everything after this time, such as 30m]:SPAN:_default' \
'--json[Print JSON]' \
'--undo[Keep what \`redoma undo\` needs]' \
'(--undo)--no-undo[Keep nothing for \`redoma undo\`]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::file -- Compare with this file as the project'\''s policy; without it, with the profile alone:_files' \
&& ret=0
;;
(profiles)
_arguments "${_arguments_options[@]}" : \
'()--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::name -- Print this one as it is written:_default' \
&& ret=0
;;
(agents)
_arguments "${_arguments_options[@]}" : \
'()--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::name -- Print this one as it is written:_default' \
&& ret=0
;;
        esac
    ;;
esac
;;
(changes)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::session -- The session, or the beginning of its id; without it, the newest here:_default' \
":: :_redoma__subcmd__changes_commands" \
"*::: :->changes" \
&& ret=0

    case $state in
    (changes)
        words=($line[2] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:redoma-changes-command-$line[2]:"
        case $line[2] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::session -- The session, or the beginning of its id; without it, the newest here:_default' \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
'*--path=[Only this path or pattern, relative to the project; may be repeated]:PATH:_default' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::session -- The session, or the beginning of its id; without it, the newest here:_default' \
&& ret=0
;;
(apply)
_arguments "${_arguments_options[@]}" : \
'*--path=[Only this path or pattern, relative to the project; may be repeated]:PATH:_default' \
'*--force=[Overwrite this path although the project changed meanwhile; may be repeated]:PATH:_default' \
'-y[Do not ask]' \
'--yes[Do not ask]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::session -- The session, or the beginning of its id; without it, the newest here:_default' \
&& ret=0
;;
(discard)
_arguments "${_arguments_options[@]}" : \
'-y[Do not ask]' \
'--yes[Do not ask]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::session -- The session, or the beginning of its id; without it, the newest here:_default' \
&& ret=0
;;
        esac
    ;;
esac
;;
(undo)
_arguments "${_arguments_options[@]}" : \
'-n[Only show what would be done]' \
'--dry-run[Only show what would be done]' \
'-y[Do not ask]' \
'--yes[Do not ask]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::session -- The session, or the beginning of its id; without it, the newest here:_default' \
&& ret=0
;;
(sessions)
_arguments "${_arguments_options[@]}" : \
'-n+[Print at most this many]:N:_default' \
'--limit=[Print at most this many]:N:_default' \
'--json[Print JSON]' \
'(-n --limit)--verify[Check the whole record instead\: order, hashes and signatures]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(log)
_arguments "${_arguments_options[@]}" : \
'-f[Go on printing until the session ends]' \
'--follow[Go on printing until the session ends]' \
'--json[Print the record'\''s lines as they are]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::session -- The session, or the beginning of its id; without it, the newest:_default' \
&& ret=0
;;
(net)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_redoma__subcmd__net_commands" \
"*::: :->net" \
&& ret=0

    case $state in
    (net)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:redoma-net-command-$line[1]:"
        case $line[1] in
            (flows)
_arguments "${_arguments_options[@]}" : \
'--host=[Only those to hosts like this, such as \`*.example.com\`]:GLOB:_default' \
'-f[Go on printing until the session ends]' \
'--follow[Go on printing until the session ends]' \
'--blocked[Only those that were refused or cut off]' \
'--opaque[Only those that passed unseen]' \
'--inspected[Only those that were looked into]' \
'--json[Print JSON, one connection a line]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::session -- The session, or the beginning of its id; without it, the newest:_default' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':flow -- Its number, as `net flows` shows it; or SESSION\:NUMBER:_default' \
&& ret=0
;;
(export)
_arguments "${_arguments_options[@]}" : \
'--format=[The form]:FORMAT:((har\:"HTTP Archive 1.2"
jsonl\:"The record'\''s own lines about the network"
pcapng\:"What \`redoma run --capture\` kept, with the keys, for Wireshark"))' \
'-o+[Write into this file, which only its owner may read, and not to standard output]:FILE:_files' \
'--output=[Write into this file, which only its owner may read, and not to standard output]:FILE:_files' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::session -- The session, or the beginning of its id; without it, the newest:_default' \
&& ret=0
;;
        esac
    ;;
esac
;;
(proxy)
_arguments "${_arguments_options[@]}" : \
'--listen=[Where to listen]:ADDRESS:PORT:_default' \
'--ca-out=[Write the certificate that clients are to trust into this file]:FILE:_files' \
'--policy=[Use this file in place of the project'\''s redoma.toml]:FILE:_files' \
'--profile=[Begin from this profile]:NAME:_default' \
'--agent=[Add what this agent needs]:NAME:_default' \
'--net=[The network, where no rule decides]:MODE:((none\:"No network at all"
deny\:"Only what a rule allows"
ask\:"Ask the user"
allow\:"Everything but what a rule denies"))' \
'*--allow=[Allow connections to hosts, with commas between them\: \`example.com\`, \`*.example.com\:8443\`, \`localhost\:5432\`, or what a tool needs\: \`npm\`, \`pip\`, \`cargo\`, \`git\`, …]:HOST[:PORT],…:_default' \
'*--read=[Allow reading a path]:PATH:_files' \
'*--write=[Allow reading and writing a path]:PATH:_files' \
'*--deny=[Deny a path or pattern, whatever else allows it]:PATH:_files' \
'*--env=[Pass a variable, or set it]:NAME[=VALUE]:_default' \
'--workspace=[Work on the project itself, or on a layer above it]:KIND:((direct\:"The project itself"
overlay\:"A layer above it, until \`redoma changes apply\`"))' \
'--memory=[Limit memory, such as 1GiB]:SIZE:_default' \
'--cpus=[Limit processors, such as 1.5]:N:_default' \
'--pids=[Limit processes and threads]:N:_default' \
'--time=[End everything after this time, such as 30m]:SPAN:_default' \
'--undo[Keep what \`redoma undo\` needs]' \
'(--undo)--no-undo[Keep nothing for \`redoma undo\`]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(image)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_redoma__subcmd__image_commands" \
"*::: :->image" \
&& ret=0

    case $state in
    (image)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:redoma-image-command-$line[1]:"
        case $line[1] in
            (pull)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':reference -- Its name, such as debian\:12, ghcr.io/owner/name\:tag or NAME@sha256\:DIGEST:_default' \
&& ret=0
;;
(ls)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(rm)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'*::references -- Their names:_default' \
&& ret=0
;;
(import)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':path -- Where it is:_files' \
'::name -- What to call it; without it, as it calls itself. Of several images in an archive, the one to take:_default' \
&& ret=0
;;
(prune)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
        esac
    ;;
esac
;;
(audit)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_redoma__subcmd__audit_commands" \
"*::: :->audit" \
&& ret=0

    case $state in
    (audit)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:redoma-audit-command-$line[1]:"
        case $line[1] in
            (purge)
_arguments "${_arguments_options[@]}" : \
'--older-than=[Keep what is younger than this, such as 30d, whatever the policy says]:TIME:_default' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(verify)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
        esac
    ;;
esac
;;
(sandbox)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_redoma__subcmd__sandbox_commands" \
"*::: :->sandbox" \
&& ret=0

    case $state in
    (sandbox)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:redoma-sandbox-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
'--name=[Its name; without one it gets one]:NAME:_default' \
'--net=[The network, where no rule decides]:MODE:((none\:"No network at all"
deny\:"Only what a rule allows"
ask\:"Ask the user"
allow\:"Everything but what a rule denies"))' \
'*--allow=[Allow connections to hosts, or what a tool needs\: \`npm\`, \`pip\`, \`cargo\`, \`git\`, …]:HOST[:PORT],…:_default' \
'--policy=[Put the sandbox under this policy file]:FILE:_files' \
'*--publish=[Let a port of this machine'\''s loopback lead to a port inside]:HOST:INSIDE:_default' \
'*--mount=[Show a folder or file of this machine inside; \`\:ro\` read-only, \`\:overlay\` with changes kept aside]:PATH:INSIDE[:ro|:overlay]:_files' \
'*--env=[Pass a variable to every command, or set it]:NAME[=VALUE]:_default' \
'--workdir=[Where commands run]:PATH:_files' \
'--user=[Who commands are]:USER:((root\:"User 0 inside, who is you and nobody else outside"
me\:"You, under your own number"))' \
'--cpus=[Limit processors, such as 1.5]:N:_default' \
'--memory=[Limit memory, such as 1GiB]:SIZE:_default' \
'--pids=[Limit processes and threads]:N:_default' \
'--disk=[Limit what it changes on its file system, such as 4GiB]:SIZE:_default' \
'--time=[End it this long after it was made, such as 2h]:SPAN:_default' \
'()--template=[Begin from a template; \`redoma templates\` lists them]:NAME:_default' \
'--driver=[What makes the sandbox]:DRIVER:((native\:"This machine'\''s kernel"
oci\:"Docker or Podman"
mock\:"Nothing\: for tests"))' \
'--engine-host=[The engine of the oci driver\: a socket, \`ssh\://…\` or \`tcp\://…\`]:URL:_default' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::image -- `host`, a folder that is a root file system, or an image:_default' \
&& ret=0
;;
(exec)
_arguments "${_arguments_options[@]}" : \
'--timeout=[End the command and all it started after this time]:SPAN:_default' \
'--workdir=[Where it runs]:PATH:_files' \
'*--env=[Pass a variable, or set it]:NAME[=VALUE]:_default' \
'-i[Pass standard input on]' \
'--interactive[Pass standard input on]' \
'-t[Give the command a terminal]' \
'--tty[Give the command a terminal]' \
'(-i --interactive -t --tty)-d[Leave it running, with its output in the sandbox'\''s log]' \
'(-i --interactive -t --tty)--detach[Leave it running, with its output in the sandbox'\''s log]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':id -- The sandbox:_default' \
'*::command -- The command and its arguments:_cmdambivalent' \
&& ret=0
;;
(shell)
_arguments "${_arguments_options[@]}" : \
'--workdir=[Where it runs]:PATH:_files' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':id -- The sandbox:_default' \
&& ret=0
;;
(ls)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(info)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':id -- The sandbox:_default' \
&& ret=0
;;
(rm)
_arguments "${_arguments_options[@]}" : \
'()--all[All there are]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'*::ids -- The sandboxes:_default' \
&& ret=0
;;
(logs)
_arguments "${_arguments_options[@]}" : \
'-f[Go on as more comes]' \
'--follow[Go on as more comes]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':id -- The sandbox:_default' \
&& ret=0
;;
(stats)
_arguments "${_arguments_options[@]}" : \
'-f[Go on every second]' \
'--follow[Go on every second]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':id -- The sandbox:_default' \
&& ret=0
;;
(history)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':id -- The sandbox:_default' \
&& ret=0
;;
(pause)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':id -- The sandbox:_default' \
&& ret=0
;;
(resume)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':id -- The sandbox:_default' \
&& ret=0
;;
(cp)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':from -- What to copy:_files' \
':to -- Where to:_files' \
&& ret=0
;;
(snapshot)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':id -- The sandbox:_default' \
':name -- The snapshot'\''s name:_default' \
&& ret=0
;;
(fork)
_arguments "${_arguments_options[@]}" : \
'*--name=[A name for a sandbox; several make several]:NAME:_default' \
'*--publish=[Let a port of this machine'\''s loopback lead to a port inside]:HOST:INSIDE:_default' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':snapshot -- The snapshot:_default' \
&& ret=0
;;
(checkpoint)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':id -- The sandbox:_default' \
&& ret=0
;;
(restore)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':id -- The sandbox:_default' \
&& ret=0
;;
        esac
    ;;
esac
;;
(snapshot)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_redoma__subcmd__snapshot_commands" \
"*::: :->snapshot" \
&& ret=0

    case $state in
    (snapshot)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:redoma-snapshot-command-$line[1]:"
        case $line[1] in
            (ls)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(rm)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'*::names -- The snapshots:_default' \
&& ret=0
;;
(prune)
_arguments "${_arguments_options[@]}" : \
'--max-age=[How old they may be, such as 7d]:SPAN:_default' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
'--content[Show how texts differ as well]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':before -- The first:_default' \
':after -- The second:_default' \
&& ret=0
;;
        esac
    ;;
esac
;;
(up)
_arguments "${_arguments_options[@]}" : \
'-f+[The file; without it, the one in the current folder]:FILE:_files' \
'--file=[The file; without it, the one in the current folder]:FILE:_files' \
'*--env=[Let the file use a variable as \`\${NAME}\`, or set it]:NAME[=VALUE]:_default' \
'--driver=[What makes the sandbox]:DRIVER:((native\:"This machine'\''s kernel"
oci\:"Docker or Podman"
mock\:"Nothing\: for tests"))' \
'--engine-host=[The engine of the oci driver\: a socket, \`ssh\://…\` or \`tcp\://…\`]:URL:_default' \
'--recreate[Make what is not as the file says anew]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(down)
_arguments "${_arguments_options[@]}" : \
'-f+[The file that describes it; without it, the one in the current folder]:FILE:_files' \
'--file=[The file that describes it; without it, the one in the current folder]:FILE:_files' \
'(-f --file)--group=[Its name, where the file is gone]:NAME:_default' \
'--keep[Keep the sandboxes with what was written in them]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(ps)
_arguments "${_arguments_options[@]}" : \
'-f+[The file that describes it; without it, the one in the current folder]:FILE:_files' \
'--file=[The file that describes it; without it, the one in the current folder]:FILE:_files' \
'(-f --file)--group=[Its name, where the file is gone]:NAME:_default' \
'(-f --file --group)-a[Those of all groups]' \
'(-f --file --group)--all[Those of all groups]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(logs)
_arguments "${_arguments_options[@]}" : \
'-f+[The file that describes it; without it, the one in the current folder]:FILE:_files' \
'--file=[The file that describes it; without it, the one in the current folder]:FILE:_files' \
'(-f --file)--group=[Its name, where the file is gone]:NAME:_default' \
'-F[Go on as more comes]' \
'--follow[Go on as more comes]' \
'--json[Print a JSON line for each line]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'*::services -- Only these services:_default' \
&& ret=0
;;
(preview)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
":: :_redoma__subcmd__preview_commands" \
"*::: :->preview" \
&& ret=0

    case $state in
    (preview)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:redoma-preview-command-$line[1]:"
        case $line[1] in
            (up)
_arguments "${_arguments_options[@]}" : \
'*--env=[Let the services file use a variable as \`\${NAME}\`, or set it]:NAME[=VALUE]:_default' \
'--driver=[What makes the sandbox]:DRIVER:((native\:"This machine'\''s kernel"
oci\:"Docker or Podman"
mock\:"Nothing\: for tests"))' \
'--engine-host=[The engine of the oci driver\: a socket, \`ssh\://…\` or \`tcp\://…\`]:URL:_default' \
'--direct[Let what services change in the tree happen to it]' \
'--recreate[Make what is not as the file says anew]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(status)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::branch -- The branch, or the preview'\''s name; without it, the branch that is checked out here:_default' \
&& ret=0
;;
(down)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::branch -- The branch, or the preview'\''s name; without it, the branch that is checked out here:_default' \
&& ret=0
;;
(ls)
_arguments "${_arguments_options[@]}" : \
'-a[Those of all repositories]' \
'--all[Those of all repositories]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
        esac
    ;;
esac
;;
(templates)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(reap)
_arguments "${_arguments_options[@]}" : \
'--max-age=[Also those that are older than this, such as 7d]:SPAN:_default' \
'--dry-run[Only say which]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(pause-idle)
_arguments "${_arguments_options[@]}" : \
'--max-idle=[How long that may be]:SPAN:_default' \
'--serving[Also services, and what has a published port\: nothing but a command wakes those]' \
'--dry-run[Only say which]' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(redteam)
_arguments "${_arguments_options[@]}" : \
'--tier=[The tier to attack; without it, what this machine has]:TIER:((full\:"Namespaces, Landlock and seccomp"
landlock\:"Landlock and seccomp"))' \
'--attempt=[Make one attempt, here and now; used inside]:NAME:_default' \
'--stage=[What was set up for the attempt]:JSON:_default' \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
':shell -- The shell:(bash elvish fish powershell zsh)' \
&& ret=0
;;
(man)
_arguments "${_arguments_options[@]}" : \
'()--out=[Write the pages of all commands into this folder instead]:DIR:_files' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'*::command -- The command, such as `run` or `policy show`; without it, redoma itself:_default' \
&& ret=0
;;
(version)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON]' \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(keeper)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'::id -- The sandbox; without it the keeper of a container'\''s network, as standard input says:_default' \
&& ret=0
;;
(guest)
_arguments "${_arguments_options[@]}" : \
'-q[Say nothing beside the answer but errors]' \
'--quiet[Say nothing beside the answer but errors]' \
'-h[Print help]' \
'--help[Print help]' \
'*::words -- What:_default' \
&& ret=0
;;
        esac
    ;;
esac
}

(( $+functions[_redoma_commands] )) ||
_redoma_commands() {
    local commands; commands=(
'run:Run a command, or a known agent by its name alone, under the bell' \
'doctor:Say what this machine can enforce, and what is missing' \
'why:Say whether something is allowed, by which rule, and the smallest change that would decide otherwise' \
'allow:Allow TARGET in the policy file; comments stay' \
'deny:Deny TARGET in the policy file; comments stay' \
'policy:Make, show, check and trust policies' \
'changes:See and take over what a session with an overlay workspace changed' \
'undo:Bring the project back to how it was before a session' \
'sessions:List the sessions, newest first' \
'log:Show what a session did' \
'net:Show what went over the network' \
'proxy:Serve the gateway by itself, as an HTTP and SOCKS 5 proxy, until it is interrupted' \
'image:Keep the images that sandboxes are made from' \
'audit:Keep the record\: check it, or remove what is old' \
'sandbox:Make sandboxes, run commands in them, freeze, fork and throw them away' \
'snapshot:List, compare and remove snapshots' \
'up:Start a group of services, and wait until they work' \
'down:Stop a group of services, last first, and remove its sandboxes' \
'ps:List the services of a group' \
'logs:Show what the services of a group wrote' \
'preview:Run each branch of a repository in sandboxes of its own' \
'templates:List what sandboxes and services can be made from by name' \
'reap:Remove sandboxes whose time is over' \
'pause-idle:Pause sandboxes in which no command began or ended for a while; the next command lets them go on' \
'redteam:Attack the boundary from inside, harmlessly, and show what stopped each attempt' \
'completions:Print the completion script of a shell' \
'man:Print a manual page' \
'version:Print the version' \
'keeper:Be the keeper of a sandbox; started by the others' \
'guest:Do what has to be done inside a container; called by the oci driver' \
    )
    _describe -t commands 'redoma commands' commands "$@"
}
(( $+functions[_redoma__subcmd__allow_commands] )) ||
_redoma__subcmd__allow_commands() {
    local commands; commands=()
    _describe -t commands 'redoma allow commands' commands "$@"
}
(( $+functions[_redoma__subcmd__audit_commands] )) ||
_redoma__subcmd__audit_commands() {
    local commands; commands=(
'purge:Remove the sessions that are older than the policy keeps them; a signed line of each stays' \
'verify:Check order, hashes and signatures of the whole record' \
    )
    _describe -t commands 'redoma audit commands' commands "$@"
}
(( $+functions[_redoma__subcmd__audit__subcmd__purge_commands] )) ||
_redoma__subcmd__audit__subcmd__purge_commands() {
    local commands; commands=()
    _describe -t commands 'redoma audit purge commands' commands "$@"
}
(( $+functions[_redoma__subcmd__audit__subcmd__verify_commands] )) ||
_redoma__subcmd__audit__subcmd__verify_commands() {
    local commands; commands=()
    _describe -t commands 'redoma audit verify commands' commands "$@"
}
(( $+functions[_redoma__subcmd__changes_commands] )) ||
_redoma__subcmd__changes_commands() {
    local commands; commands=(
'list:List what changed' \
'diff:Show the changes as a unified diff' \
'apply:Take changes over into the project' \
'discard:Throw the changes away' \
    )
    _describe -t commands 'redoma changes commands' commands "$@"
}
(( $+functions[_redoma__subcmd__changes__subcmd__apply_commands] )) ||
_redoma__subcmd__changes__subcmd__apply_commands() {
    local commands; commands=()
    _describe -t commands 'redoma changes apply commands' commands "$@"
}
(( $+functions[_redoma__subcmd__changes__subcmd__diff_commands] )) ||
_redoma__subcmd__changes__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'redoma changes diff commands' commands "$@"
}
(( $+functions[_redoma__subcmd__changes__subcmd__discard_commands] )) ||
_redoma__subcmd__changes__subcmd__discard_commands() {
    local commands; commands=()
    _describe -t commands 'redoma changes discard commands' commands "$@"
}
(( $+functions[_redoma__subcmd__changes__subcmd__list_commands] )) ||
_redoma__subcmd__changes__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'redoma changes list commands' commands "$@"
}
(( $+functions[_redoma__subcmd__completions_commands] )) ||
_redoma__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'redoma completions commands' commands "$@"
}
(( $+functions[_redoma__subcmd__deny_commands] )) ||
_redoma__subcmd__deny_commands() {
    local commands; commands=()
    _describe -t commands 'redoma deny commands' commands "$@"
}
(( $+functions[_redoma__subcmd__doctor_commands] )) ||
_redoma__subcmd__doctor_commands() {
    local commands; commands=()
    _describe -t commands 'redoma doctor commands' commands "$@"
}
(( $+functions[_redoma__subcmd__down_commands] )) ||
_redoma__subcmd__down_commands() {
    local commands; commands=()
    _describe -t commands 'redoma down commands' commands "$@"
}
(( $+functions[_redoma__subcmd__guest_commands] )) ||
_redoma__subcmd__guest_commands() {
    local commands; commands=()
    _describe -t commands 'redoma guest commands' commands "$@"
}
(( $+functions[_redoma__subcmd__image_commands] )) ||
_redoma__subcmd__image_commands() {
    local commands; commands=(
'pull:Fetch an image from a registry, verified\: every blob by digest and size, every layer by its content' \
'ls:List the images that are here' \
'rm:Forget images; what only they have is freed by \`redoma image prune\`' \
'import:Take in an image that is no registry'\''s\: a root file system, what \`docker save\` writes, or an OCI layout' \
'prune:Free what no image, sandbox or snapshot refers to' \
    )
    _describe -t commands 'redoma image commands' commands "$@"
}
(( $+functions[_redoma__subcmd__image__subcmd__import_commands] )) ||
_redoma__subcmd__image__subcmd__import_commands() {
    local commands; commands=()
    _describe -t commands 'redoma image import commands' commands "$@"
}
(( $+functions[_redoma__subcmd__image__subcmd__ls_commands] )) ||
_redoma__subcmd__image__subcmd__ls_commands() {
    local commands; commands=()
    _describe -t commands 'redoma image ls commands' commands "$@"
}
(( $+functions[_redoma__subcmd__image__subcmd__prune_commands] )) ||
_redoma__subcmd__image__subcmd__prune_commands() {
    local commands; commands=()
    _describe -t commands 'redoma image prune commands' commands "$@"
}
(( $+functions[_redoma__subcmd__image__subcmd__pull_commands] )) ||
_redoma__subcmd__image__subcmd__pull_commands() {
    local commands; commands=()
    _describe -t commands 'redoma image pull commands' commands "$@"
}
(( $+functions[_redoma__subcmd__image__subcmd__rm_commands] )) ||
_redoma__subcmd__image__subcmd__rm_commands() {
    local commands; commands=()
    _describe -t commands 'redoma image rm commands' commands "$@"
}
(( $+functions[_redoma__subcmd__keeper_commands] )) ||
_redoma__subcmd__keeper_commands() {
    local commands; commands=()
    _describe -t commands 'redoma keeper commands' commands "$@"
}
(( $+functions[_redoma__subcmd__log_commands] )) ||
_redoma__subcmd__log_commands() {
    local commands; commands=()
    _describe -t commands 'redoma log commands' commands "$@"
}
(( $+functions[_redoma__subcmd__logs_commands] )) ||
_redoma__subcmd__logs_commands() {
    local commands; commands=()
    _describe -t commands 'redoma logs commands' commands "$@"
}
(( $+functions[_redoma__subcmd__man_commands] )) ||
_redoma__subcmd__man_commands() {
    local commands; commands=()
    _describe -t commands 'redoma man commands' commands "$@"
}
(( $+functions[_redoma__subcmd__net_commands] )) ||
_redoma__subcmd__net_commands() {
    local commands; commands=(
'flows:List the connections of a session\: who made them, where to, and whether they were looked into' \
'show:Show one connection\: process, decision, TLS, and each request with its headers and the beginning of its body' \
'export:Write what went over the network in a form that other programs read' \
    )
    _describe -t commands 'redoma net commands' commands "$@"
}
(( $+functions[_redoma__subcmd__net__subcmd__export_commands] )) ||
_redoma__subcmd__net__subcmd__export_commands() {
    local commands; commands=()
    _describe -t commands 'redoma net export commands' commands "$@"
}
(( $+functions[_redoma__subcmd__net__subcmd__flows_commands] )) ||
_redoma__subcmd__net__subcmd__flows_commands() {
    local commands; commands=()
    _describe -t commands 'redoma net flows commands' commands "$@"
}
(( $+functions[_redoma__subcmd__net__subcmd__show_commands] )) ||
_redoma__subcmd__net__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'redoma net show commands' commands "$@"
}
(( $+functions[_redoma__subcmd__pause-idle_commands] )) ||
_redoma__subcmd__pause-idle_commands() {
    local commands; commands=()
    _describe -t commands 'redoma pause-idle commands' commands "$@"
}
(( $+functions[_redoma__subcmd__policy_commands] )) ||
_redoma__subcmd__policy_commands() {
    local commands; commands=(
'init:Write a commented policy to begin from' \
'show:Show the policy files, or what they come to' \
'check:Check a policy file' \
'schema:Print the JSON schema of policy files, for editors' \
'trust:Trust the exact content of a policy file, so that it may widen' \
'diff:Show what two policies do differently' \
'profiles:List the built-in profiles' \
'agents:List the agents with a preset' \
    )
    _describe -t commands 'redoma policy commands' commands "$@"
}
(( $+functions[_redoma__subcmd__policy__subcmd__agents_commands] )) ||
_redoma__subcmd__policy__subcmd__agents_commands() {
    local commands; commands=()
    _describe -t commands 'redoma policy agents commands' commands "$@"
}
(( $+functions[_redoma__subcmd__policy__subcmd__check_commands] )) ||
_redoma__subcmd__policy__subcmd__check_commands() {
    local commands; commands=()
    _describe -t commands 'redoma policy check commands' commands "$@"
}
(( $+functions[_redoma__subcmd__policy__subcmd__diff_commands] )) ||
_redoma__subcmd__policy__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'redoma policy diff commands' commands "$@"
}
(( $+functions[_redoma__subcmd__policy__subcmd__init_commands] )) ||
_redoma__subcmd__policy__subcmd__init_commands() {
    local commands; commands=()
    _describe -t commands 'redoma policy init commands' commands "$@"
}
(( $+functions[_redoma__subcmd__policy__subcmd__profiles_commands] )) ||
_redoma__subcmd__policy__subcmd__profiles_commands() {
    local commands; commands=()
    _describe -t commands 'redoma policy profiles commands' commands "$@"
}
(( $+functions[_redoma__subcmd__policy__subcmd__schema_commands] )) ||
_redoma__subcmd__policy__subcmd__schema_commands() {
    local commands; commands=()
    _describe -t commands 'redoma policy schema commands' commands "$@"
}
(( $+functions[_redoma__subcmd__policy__subcmd__show_commands] )) ||
_redoma__subcmd__policy__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'redoma policy show commands' commands "$@"
}
(( $+functions[_redoma__subcmd__policy__subcmd__trust_commands] )) ||
_redoma__subcmd__policy__subcmd__trust_commands() {
    local commands; commands=()
    _describe -t commands 'redoma policy trust commands' commands "$@"
}
(( $+functions[_redoma__subcmd__preview_commands] )) ||
_redoma__subcmd__preview_commands() {
    local commands; commands=(
'up:Start the branch that is checked out here' \
'status:Say what runs for a branch, and where' \
'down:Remove the preview of a branch, also of one that is gone' \
'ls:List the previews of this repository' \
    )
    _describe -t commands 'redoma preview commands' commands "$@"
}
(( $+functions[_redoma__subcmd__preview__subcmd__down_commands] )) ||
_redoma__subcmd__preview__subcmd__down_commands() {
    local commands; commands=()
    _describe -t commands 'redoma preview down commands' commands "$@"
}
(( $+functions[_redoma__subcmd__preview__subcmd__ls_commands] )) ||
_redoma__subcmd__preview__subcmd__ls_commands() {
    local commands; commands=()
    _describe -t commands 'redoma preview ls commands' commands "$@"
}
(( $+functions[_redoma__subcmd__preview__subcmd__status_commands] )) ||
_redoma__subcmd__preview__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'redoma preview status commands' commands "$@"
}
(( $+functions[_redoma__subcmd__preview__subcmd__up_commands] )) ||
_redoma__subcmd__preview__subcmd__up_commands() {
    local commands; commands=()
    _describe -t commands 'redoma preview up commands' commands "$@"
}
(( $+functions[_redoma__subcmd__proxy_commands] )) ||
_redoma__subcmd__proxy_commands() {
    local commands; commands=()
    _describe -t commands 'redoma proxy commands' commands "$@"
}
(( $+functions[_redoma__subcmd__ps_commands] )) ||
_redoma__subcmd__ps_commands() {
    local commands; commands=()
    _describe -t commands 'redoma ps commands' commands "$@"
}
(( $+functions[_redoma__subcmd__reap_commands] )) ||
_redoma__subcmd__reap_commands() {
    local commands; commands=()
    _describe -t commands 'redoma reap commands' commands "$@"
}
(( $+functions[_redoma__subcmd__redteam_commands] )) ||
_redoma__subcmd__redteam_commands() {
    local commands; commands=()
    _describe -t commands 'redoma redteam commands' commands "$@"
}
(( $+functions[_redoma__subcmd__run_commands] )) ||
_redoma__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'redoma run commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox_commands] )) ||
_redoma__subcmd__sandbox_commands() {
    local commands; commands=(
'create:Make a sandbox' \
'exec:Run a command in a sandbox' \
'shell:Open a shell in a sandbox' \
'ls:List sandboxes' \
'info:Say all about a sandbox' \
'rm:End sandboxes and remove all of them' \
'logs:Show what detached commands of a sandbox wrote' \
'stats:Show what a sandbox uses' \
'history:List the commands that ran in a sandbox' \
'pause:Stop every process of a sandbox where it stands' \
'resume:Let a paused sandbox go on' \
'cp:Copy files into a sandbox or out of it' \
'snapshot:Freeze the file system of a sandbox under a name' \
'fork:Make sandboxes from a snapshot; limits, rules and mounts are as they were, published ports are not' \
'checkpoint:Keep every process of a sandbox on disk and end them' \
'restore:Bring back what a checkpoint keeps' \
    )
    _describe -t commands 'redoma sandbox commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__checkpoint_commands] )) ||
_redoma__subcmd__sandbox__subcmd__checkpoint_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox checkpoint commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__cp_commands] )) ||
_redoma__subcmd__sandbox__subcmd__cp_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox cp commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__create_commands] )) ||
_redoma__subcmd__sandbox__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox create commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__exec_commands] )) ||
_redoma__subcmd__sandbox__subcmd__exec_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox exec commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__fork_commands] )) ||
_redoma__subcmd__sandbox__subcmd__fork_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox fork commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__history_commands] )) ||
_redoma__subcmd__sandbox__subcmd__history_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox history commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__info_commands] )) ||
_redoma__subcmd__sandbox__subcmd__info_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox info commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__logs_commands] )) ||
_redoma__subcmd__sandbox__subcmd__logs_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox logs commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__ls_commands] )) ||
_redoma__subcmd__sandbox__subcmd__ls_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox ls commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__pause_commands] )) ||
_redoma__subcmd__sandbox__subcmd__pause_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox pause commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__restore_commands] )) ||
_redoma__subcmd__sandbox__subcmd__restore_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox restore commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__resume_commands] )) ||
_redoma__subcmd__sandbox__subcmd__resume_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox resume commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__rm_commands] )) ||
_redoma__subcmd__sandbox__subcmd__rm_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox rm commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__shell_commands] )) ||
_redoma__subcmd__sandbox__subcmd__shell_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox shell commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__snapshot_commands] )) ||
_redoma__subcmd__sandbox__subcmd__snapshot_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox snapshot commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sandbox__subcmd__stats_commands] )) ||
_redoma__subcmd__sandbox__subcmd__stats_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sandbox stats commands' commands "$@"
}
(( $+functions[_redoma__subcmd__sessions_commands] )) ||
_redoma__subcmd__sessions_commands() {
    local commands; commands=()
    _describe -t commands 'redoma sessions commands' commands "$@"
}
(( $+functions[_redoma__subcmd__snapshot_commands] )) ||
_redoma__subcmd__snapshot_commands() {
    local commands; commands=(
'ls:List snapshots' \
'rm:Remove snapshots; sandboxes that stand on them stay as they are' \
'prune:Remove snapshots that are older than something' \
'diff:Show what differs between two snapshots, or sandboxes as they are now' \
    )
    _describe -t commands 'redoma snapshot commands' commands "$@"
}
(( $+functions[_redoma__subcmd__snapshot__subcmd__diff_commands] )) ||
_redoma__subcmd__snapshot__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'redoma snapshot diff commands' commands "$@"
}
(( $+functions[_redoma__subcmd__snapshot__subcmd__ls_commands] )) ||
_redoma__subcmd__snapshot__subcmd__ls_commands() {
    local commands; commands=()
    _describe -t commands 'redoma snapshot ls commands' commands "$@"
}
(( $+functions[_redoma__subcmd__snapshot__subcmd__prune_commands] )) ||
_redoma__subcmd__snapshot__subcmd__prune_commands() {
    local commands; commands=()
    _describe -t commands 'redoma snapshot prune commands' commands "$@"
}
(( $+functions[_redoma__subcmd__snapshot__subcmd__rm_commands] )) ||
_redoma__subcmd__snapshot__subcmd__rm_commands() {
    local commands; commands=()
    _describe -t commands 'redoma snapshot rm commands' commands "$@"
}
(( $+functions[_redoma__subcmd__templates_commands] )) ||
_redoma__subcmd__templates_commands() {
    local commands; commands=()
    _describe -t commands 'redoma templates commands' commands "$@"
}
(( $+functions[_redoma__subcmd__undo_commands] )) ||
_redoma__subcmd__undo_commands() {
    local commands; commands=()
    _describe -t commands 'redoma undo commands' commands "$@"
}
(( $+functions[_redoma__subcmd__up_commands] )) ||
_redoma__subcmd__up_commands() {
    local commands; commands=()
    _describe -t commands 'redoma up commands' commands "$@"
}
(( $+functions[_redoma__subcmd__version_commands] )) ||
_redoma__subcmd__version_commands() {
    local commands; commands=()
    _describe -t commands 'redoma version commands' commands "$@"
}
(( $+functions[_redoma__subcmd__why_commands] )) ||
_redoma__subcmd__why_commands() {
    local commands; commands=()
    _describe -t commands 'redoma why commands' commands "$@"
}

if [ "$funcstack[1]" = "_redoma" ]; then
    _redoma "$@"
else
    compdef _redoma redoma
fi
