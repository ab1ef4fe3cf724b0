use super::*;

/// A BPF machine of the few instructions used here: what the kernel would answer.
fn run(program: &[Instruction], arch: u32, nr: u32, arguments: [u32; 6]) -> u32 {
    let word = |offset: u32| match offset {
        OFFSET_NR => nr,
        OFFSET_ARCH => arch,
        offset => arguments[((offset - OFFSET_ARGUMENTS) / 8) as usize],
    };
    let (mut at, mut a) = (0usize, 0u32);
    loop {
        let i = program[at];
        at += 1;
        let code = u32::from(i.code);
        match code & 0x07 {
            nr::BPF_LD => a = word(i.k),
            nr::BPF_ALU => a &= i.k,
            nr::BPF_RET => return i.k,
            nr::BPF_JMP if code & 0xf0 == nr::BPF_JA => at += i.k as usize,
            nr::BPF_JMP => {
                let holds = match code & 0xf0 {
                    nr::BPF_JEQ => a == i.k,
                    nr::BPF_JGE => a >= i.k,
                    nr::BPF_JSET => a & i.k != 0,
                    other => panic!("jump {other:#x}"),
                };
                at += usize::from(if holds { i.jt } else { i.jf });
            }
            other => panic!("code {other:#x}"),
        }
    }
}

/// Without a network.
fn setting(tier: Tier, nested_userns: bool) -> Setting {
    Setting { tier, nested_userns, wire: false }
}

fn ask(tier: Tier, nested: bool, nr: impl TryInto<u32>, arguments: [u32; 6]) -> u32 {
    run(&filter(setting(tier, nested)), AUDIT_ARCH, nr.try_into().ok().unwrap(), arguments)
}

fn errno(errno: i32) -> u32 {
    nr::SECCOMP_RET_ERRNO | errno as u32
}

const NO: [u32; 6] = [0; 6];

#[test]
fn every_simple_rule_is_answered_as_written() {
    let settings = [(Tier::Full, false), (Tier::Full, true), (Tier::Landlock, false)];
    let without = settings.map(|(tier, nested)| setting(tier, nested));
    for setting in without.into_iter().chain(without.map(|setting| Setting { wire: true, ..setting })) {
        let program = filter(setting);
        let leaves = leaves(setting);
        for number in 0..600 {
            let expected = match leaves.get(&number) {
                Some(leaf) if !leaf.checks.is_empty() => continue,
                Some(leaf) => leaf.otherwise,
                None => UNKNOWN,
            };
            assert_eq!(run(&program, AUDIT_ARCH, number, NO), answer(expected).k, "call {number}");
        }
    }
}

#[test]
fn foreign_architectures_and_x32_do_not_exist() {
    let program = filter(setting(Tier::Full, false));
    assert_eq!(run(&program, 0x4000_0003, 20, NO), errno(nr::ENOSYS));
    assert_eq!(run(&program, AUDIT_ARCH, X32_BIT | 39, NO), errno(nr::ENOSYS));
    assert_eq!(run(&program, AUDIT_ARCH, nr::SYS_getpid as u32, NO), nr::SECCOMP_RET_ALLOW);
}

#[test]
fn namespaces_are_refused_unless_nested() {
    let newuser = [nr::CLONE_NEWUSER as u32 | nr::SIGCHLD as u32, 0, 0, 0, 0, 0];
    assert_eq!(ask(Tier::Full, false, nr::SYS_clone, newuser), errno(nr::EPERM));
    assert_eq!(ask(Tier::Full, true, nr::SYS_clone, newuser), nr::SECCOMP_RET_ALLOW);
    assert_eq!(
        ask(Tier::Full, false, nr::SYS_clone, [nr::SIGCHLD as u32, 0, 0, 0, 0, 0]),
        nr::SECCOMP_RET_ALLOW
    );
    assert_eq!(ask(Tier::Full, false, nr::SYS_clone3, NO), errno(nr::ENOSYS));
    assert_eq!(ask(Tier::Full, true, nr::SYS_mount, NO), nr::SECCOMP_RET_ALLOW);
    assert_eq!(ask(Tier::Full, false, nr::SYS_mount, NO), errno(nr::EPERM));
}

#[test]
fn sockets_by_family_and_protocol() {
    let full = |family: i32, protocol: i32| {
        ask(
            Tier::Full,
            false,
            nr::SYS_socket,
            [family as u32, nr::SOCK_STREAM as u32, protocol as u32, 0, 0, 0],
        )
    };
    assert_eq!(full(nr::AF_INET, 0), nr::SECCOMP_RET_ALLOW);
    assert_eq!(full(nr::AF_INET6, nr::IPPROTO_TCP), nr::SECCOMP_RET_ALLOW);
    assert_eq!(full(nr::AF_INET, 262), errno(nr::EPROTONOSUPPORT));
    assert_eq!(full(nr::AF_INET6, 132), errno(nr::EPROTONOSUPPORT));
    assert_eq!(full(nr::AF_NETLINK, nr::NETLINK_ROUTE), nr::SECCOMP_RET_ALLOW);
    assert_eq!(full(nr::AF_NETLINK, nr::NETLINK_NETFILTER), errno(nr::EPROTONOSUPPORT));
    assert_eq!(full(nr::AF_PACKET, 0), errno(nr::EAFNOSUPPORT));
    assert_eq!(
        ask(Tier::Landlock, false, nr::SYS_socket, [nr::AF_UNIX as u32, 1, 0, 0, 0, 0]),
        errno(nr::EACCES)
    );
    let pair = |kind: i32| ask(Tier::Landlock, false, nr::SYS_socketpair, [1, kind as u32, 0, 0, 0, 0]);
    assert_eq!(pair(nr::SOCK_STREAM | nr::SOCK_CLOEXEC), nr::SECCOMP_RET_ALLOW);
    assert_eq!(pair(nr::SOCK_DGRAM), errno(nr::EACCES));
}

#[test]
fn set_user_id_files_cannot_be_made() {
    let full = |nr, arguments| ask(Tier::Full, false, nr, arguments);
    assert_eq!(full(nr::SYS_fchmodat, [0, 0, 0o4755, 0, 0, 0]), errno(nr::EPERM));
    assert_eq!(full(nr::SYS_fchmod, [0, 0o2755, 0, 0, 0, 0]), errno(nr::EPERM));
    assert_eq!(full(nr::SYS_fchmod, [0, 0o755, 0, 0, 0, 0]), nr::SECCOMP_RET_ALLOW);
    let create = nr::O_CREAT as u32;
    assert_eq!(full(nr::SYS_openat, [0, 0, create, 0o4755, 0, 0]), errno(nr::EPERM));
    assert_eq!(full(nr::SYS_openat, [0, 0, create, 0o644, 0, 0]), nr::SECCOMP_RET_ALLOW);
    assert_eq!(full(nr::SYS_openat, [0, 0, 0, 0o4755, 0, 0]), nr::SECCOMP_RET_ALLOW);
    assert_eq!(full(nr::SYS_openat, [0, 0, nr::O_TMPFILE as u32, 0o4755, 0, 0]), errno(nr::EPERM));
    assert_eq!(full(nr::SYS_openat, [0, 0, nr::O_DIRECTORY as u32, 0o4755, 0, 0]), nr::SECCOMP_RET_ALLOW);
    assert_eq!(full(nr::SYS_openat2, NO), errno(nr::ENOSYS));
}

#[test]
fn attributes_are_supervised_where_no_mount_guards_them() {
    let both = |nr| [Tier::Full, Tier::Landlock].map(|tier| ask(tier, false, nr, NO));
    for nr in [nr::SYS_fchmodat, nr::SYS_fchown, nr::SYS_utimensat, nr::SYS_setxattr, nr::SYS_fremovexattr] {
        assert_eq!(both(nr), [nr::SECCOMP_RET_ALLOW, nr::SECCOMP_RET_USER_NOTIF], "call {nr}");
    }
    let setuid = [0, 0, 0o4755, 0, 0, 0];
    assert_eq!(ask(Tier::Landlock, false, nr::SYS_fchmodat, setuid), errno(nr::EPERM));
    let flags = [0, nr::FS_IOC_SETFLAGS as u32, 0, 0, 0, 0];
    assert_eq!(ask(Tier::Landlock, false, nr::SYS_ioctl, flags), errno(nr::EPERM));
    assert_eq!(ask(Tier::Full, false, nr::SYS_ioctl, flags), nr::SECCOMP_RET_ALLOW);
}

#[test]
fn every_supervised_call_has_a_reader() {
    let supervised = SIMPLE.iter().filter(|rule| rule.answer == Answer::Supervise);
    let numbers: Vec<_> = supervised.map(|rule| rule.nr).collect();
    assert!(numbers.len() >= 12, "{numbers:?}");
    for nr in numbers {
        let (attributes, sockets) = (crate::attributes::reader(nr.into()), crate::sockets::reader(nr.into()));
        assert_eq!(u8::from(attributes.is_some()) + u8::from(sockets.is_some()), 1, "call {nr}");
    }
}

#[test]
fn terminal_injection_is_refused() {
    let ioctl = |command: u64| ask(Tier::Full, false, nr::SYS_ioctl, [0, command as u32, 0, 0, 0, 0]);
    assert_eq!(ioctl(nr::TIOCSTI), errno(nr::EPERM));
    assert_eq!(ioctl(nr::TIOCGWINSZ), nr::SECCOMP_RET_ALLOW);
}

#[test]
fn without_a_pid_namespace_only_oneself_is_limited_and_scheduled() {
    let landlock = |nr, arguments| ask(Tier::Landlock, false, nr, arguments);
    for call in [nr::SYS_prlimit64, nr::SYS_sched_setaffinity, nr::SYS_sched_setattr] {
        assert_eq!(landlock(call, [4711, 0, 0, 0, 0, 0]), errno(nr::EPERM));
        assert_eq!(landlock(call, NO), nr::SECCOMP_RET_ALLOW);
        assert_eq!(ask(Tier::Full, false, call, [4711, 0, 0, 0, 0, 0]), nr::SECCOMP_RET_ALLOW);
    }
    let priority = |which: u32, who| landlock(nr::SYS_setpriority, [which, who, 5, 0, 0, 0]);
    assert_eq!(priority(nr::PRIO_PROCESS, 0), nr::SECCOMP_RET_ALLOW);
    assert_eq!(priority(nr::PRIO_PROCESS, 4711), errno(nr::EPERM));
    assert_eq!(priority(nr::PRIO_USER, 0), errno(nr::EPERM), "all processes of the user");
}

// === the landlock tier with a network ===

fn wired(nr: impl TryInto<u32>, arguments: [u32; 6]) -> u32 {
    let setting = Setting { wire: true, ..setting(Tier::Landlock, false) };
    run(&filter(setting), AUDIT_ARCH, nr.try_into().ok().unwrap(), arguments)
}

#[test]
fn with_a_network_only_tcp_sockets_can_be_made() {
    let socket = |family: i32, kind: i32, protocol: i32| {
        wired(nr::SYS_socket, [family as u32, kind as u32, protocol as u32, 0, 0, 0])
    };
    let flags = nr::SOCK_STREAM | nr::SOCK_NONBLOCK | nr::SOCK_CLOEXEC;
    assert_eq!(socket(nr::AF_INET, nr::SOCK_STREAM, 0), nr::SECCOMP_RET_ALLOW);
    assert_eq!(socket(nr::AF_INET6, flags, nr::IPPROTO_TCP), nr::SECCOMP_RET_ALLOW);
    assert_eq!(socket(nr::AF_INET, nr::SOCK_DGRAM, 0), errno(nr::EACCES));
    assert_eq!(socket(nr::AF_INET6, nr::SOCK_RAW, nr::IPPROTO_TCP), errno(nr::EACCES));
    assert_eq!(socket(nr::AF_INET, nr::SOCK_STREAM, 262), errno(nr::EPROTONOSUPPORT));
    for family in [nr::AF_UNIX, nr::AF_NETLINK, nr::AF_VSOCK, nr::AF_ALG] {
        assert_eq!(socket(family, nr::SOCK_STREAM, 0), errno(nr::EACCES));
    }
    for call in [nr::SYS_connect, nr::SYS_bind, nr::SYS_listen] {
        assert_eq!(wired(call, NO), nr::SECCOMP_RET_USER_NOTIF);
        assert_eq!(ask(Tier::Landlock, false, call, NO), errno(nr::EACCES));
    }
}

#[test]
fn with_a_network_nothing_connects_but_connect() {
    let fast = nr::MSG_FASTOPEN as u32 | nr::MSG_NOSIGNAL as u32;
    assert_eq!(wired(nr::SYS_sendto, [3, 0, 0, fast, 0, 0]), errno(nr::EOPNOTSUPP));
    assert_eq!(wired(nr::SYS_sendto, [3, 0, 0, 0, 0, 16]), errno(nr::EACCES));
    assert_eq!(wired(nr::SYS_sendto, [3, 0, 0, nr::MSG_NOSIGNAL as u32, 0, 0]), nr::SECCOMP_RET_ALLOW);
    assert_eq!(wired(nr::SYS_sendmsg, [3, 0, fast, 0, 0, 0]), errno(nr::EOPNOTSUPP));
    assert_eq!(wired(nr::SYS_sendmmsg, [3, 0, 1, fast, 0, 0]), errno(nr::EOPNOTSUPP));
    assert_eq!(wired(nr::SYS_sendmsg, [3, 0, nr::MSG_NOSIGNAL as u32, 0, 0, 0]), nr::SECCOMP_RET_ALLOW);
}

#[test]
fn with_a_network_options_that_say_where_to_do_not_exist() {
    let option = |level: i32, name: i32| wired(nr::SYS_setsockopt, [3, level as u32, name as u32, 0, 0, 0]);
    for (level, name) in [
        (nr::SOL_SOCKET, nr::SO_KEEPALIVE),
        (nr::IPPROTO_TCP, nr::TCP_NODELAY),
        (nr::IPPROTO_IP, nr::IP_TOS),
        (nr::IPPROTO_IPV6, nr::IPV6_V6ONLY),
    ] {
        assert_eq!(option(level, name), nr::SECCOMP_RET_ALLOW, "{level} {name}");
    }
    for (level, name) in [
        (nr::SOL_SOCKET, nr::SO_BINDTODEVICE),
        (nr::SOL_SOCKET, nr::SO_ATTACH_FILTER),
        (nr::SOL_SOCKET, nr::SO_MARK),
        (nr::IPPROTO_TCP, nr::TCP_FASTOPEN_CONNECT),
        (nr::IPPROTO_TCP, nr::TCP_ULP),
        (nr::IPPROTO_TCP, nr::TCP_REPAIR),
        (nr::IPPROTO_IP, nr::IP_OPTIONS),
        (nr::IPPROTO_IP, nr::IP_TRANSPARENT),
        (nr::IPPROTO_IPV6, nr::IPV6_RTHDR),
        (nr::IPPROTO_IPV6, nr::IPV6_ADDRFORM),
        (nr::IPPROTO_SCTP, 0),
        (nr::SOL_TLS, 1),
    ] {
        assert_eq!(option(level, name), errno(nr::ENOPROTOOPT), "{level} {name}");
    }
}
