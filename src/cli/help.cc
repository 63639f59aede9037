#include "cli/help.h"

#include "base/check.h"

namespace verbena::cli {
namespace {

constexpr std::string_view kVerbenaHelp = R"(NAME
  verbena - RDMA for any program, in software

SYNOPSIS
  verbena run [--address ADDRESS[,ADDRESS...]] [--] PROGRAM [ARGUMENT...]
  verbena test [-n HOSTS] [OPTIONS] [--] COMMAND [ARGUMENT...] [: COMMAND ...]
  verbena devices [--address ADDRESS[,ADDRESS...]] [--json]
  verbena stats [--watch [SECONDS]] [--json] [--prometheus PORT] [--pid PID]
  verbena top [--interval SECONDS] [--pid PID]
  verbena doctor [--address ADDRESS[,ADDRESS...]] [--json] [--listen | PEER]
  verbena sim [SCENARIO] [OPTIONS]
  verbena fabric SCENARIO [--set KEY=VALUE]... [--scale N]
  verbena nic FILE | status FILE
  verbena default [on | off | status]
  verbena plan [JOB] [OPTIONS]
  verbena coll [OPERATION] [-n RANKS] [OPTIONS]
  verbena model serve PATH [OPTIONS]
  verbena model fetch SOURCE[,SOURCE...] TARGET [OPTIONS]
  verbena bench kv|gpu-paths [OPTIONS]
  verbena nvmf COMMAND [OPTIONS]
  verbena --help | --version

DESCRIPTION
  Verbena is an RDMA network interface in software. Programs that use RDMA
  through libibverbs run on it unchanged, with no RDMA hardware, no kernel
  module and no privilege. On the wire it is RoCEv2: UDP port 4791.

COMMANDS
  run       run a program on Verbena's device; `verbena run --help`
  test      run a test on several hosts of its own; `verbena test --help`
  devices   list the devices that a program will see; `verbena devices --help`
  stats     counters of running programs' devices, QPs and peers, live; also for
            Prometheus; `verbena stats --help`
  top       the same as a screen of the busiest QPs; `verbena top --help`
  doctor    what is right and wrong here, and on the way to a peer, and what to
            do about it; `verbena doctor --help`
  sim       what a network will do: the same devices on a simulated one;
            `verbena sim --help`
  fabric    a simulated network for running programs; `verbena fabric --help`
  plan      which technology for a job; what switches and NICs are to be set to;
            `verbena plan --help`
  nic       virtual functions for programs that do not trust each other;
            `verbena nic --help`
  default   Verbena for all programs of a system, without `verbena run`;
            `verbena default --help`
  coll      how fast collective operations are here; `verbena coll --help`
  model     serves and loads models by RDMA; `verbena model --help`
  bench     how fast KV caches and GPUs' memories move here; `verbena bench --help`
  nvmf      a target and a host of NVMe over Fabrics; `verbena nvmf --help`

ENVIRONMENT
  VERBENA_ADDRESS
      Where devices stand: IP addresses or interface names with commas between
      them, one device each. Unset: the interface of the default route; without
      one, the first other interface that is up; else loopback.

EXIT STATUS
  0    done
  1    doctor: there is a problem
  2    wrong usage, or what was asked cannot be had here; one line on standard
       error says what, and what to do
  3    sim: a result is not as it was expected
  126  run: the program was found but cannot be executed
  127  run: the program was not found
  Otherwise `verbena run` has the exit status of its program.

EXAMPLES
  verbena devices
  verbena run -- ibv_devinfo -v
  verbena run -- ib_write_bw &  verbena run -- ib_write_bw 127.0.0.1
)";

constexpr std::string_view kRunHelp = R"(NAME
  verbena run - run a program on Verbena's device

SYNOPSIS
  verbena run [--address ADDRESS[,ADDRESS...]] [--link NAME] [--fault RULES]...
              [--fault-file FILE]... [--seed N] [--cc NAME]
              [--retransmission NAME] [--capture FILE] [--capture-limit SIZE]
              [--check[=WORDS]] [--check-exit-code N] [--share]
              [--fabric SCENARIO --as HOST [--scale N]]
              [--] PROGRAM [ARGUMENT...]

DESCRIPTION
  Executes PROGRAM so that it, and every program that it starts, loads Verbena's
  libibverbs.so.1 instead of the system's. Nothing is rebuilt or configured, and
  nothing remains when it ends. What follows PROGRAM is the program's own; `--`
  is needed only where PROGRAM begins with a dash.

  In /dev/infiniband and /sys/class/infiniband they find the files of Verbena's
  devices, and those of no others. The counters among them are live: a program
  that has opened the device reads its own, any other one the sum of all programs
  of this user that run on the device.

  The loader ignores the library path for programs that gain privilege (set-user-ID,
  set-group-ID, file capabilities), so these are refused: run verbena inside
  them, as in `sudo verbena run -- PROGRAM`. A statically linked program loads
  no libraries: it is run, after a warning.

OPTIONS
  --address ADDRESS[,ADDRESS...]
      IP addresses or interface names to stand on, one device each
      (verbena0, verbena1, ...). Goes before VERBENA_ADDRESS.
  --link udp|packet|xdp|iwarp
      What carries the frames. udp (default): UDP sockets, without privilege.
      packet: Ethernet frames by AF_PACKET; needs CAP_NET_RAW. xdp: the same by
      AF_XDP, past the kernel's stack; needs CAP_NET_RAW, CAP_NET_ADMIN and
      CAP_BPF, and one process at a time has it on an interface. On these two,
      GID indexes 0 and 2 are RoCE v1. iwarp: an iWARP device, whose QPs have a
      TCP connection each, by rdma_cm; without privilege (docs/iwarp.md).
  --fault RULES
      What goes wrong, in the devices of PROGRAM: rules with ; between them.
      FAULTS, below, has the language.
  --fault-file FILE
      Rules, one a line; # begins a comment.
  --seed N
      Of all that is random in the faults (default 1). Same seed and same
      traffic, same faults.
  --cc NAME
      Congestion control, of each QP: dcqcn (default) slows down when the peer
      tells of ECN marks, and only then; off never does.
  --retransmission NAME
      What RC QPs send again when a packet is lost: go_back_n (default), as cards
      do, that packet and all after it; selective_repeat that packet alone, where
      the peer is a Verbena that was told the same. Any other peer gets go_back_n.
  --capture FILE
      All frames of PROGRAM's devices, both ways, as a pcapng file for Wireshark
      or tshark; what a fault dropped is there with a comment that names it. A
      second process writes to FILE with its process ID in the name.
  --capture-limit SIZE
      At most so much of it on disk (100M, say): the older half is in FILE.old,
      and what is older than that is gone.
  --check[=fatal,leaks,overlaps]
      Says on standard error what PROGRAM does wrong with the verbs, with the
      stack of the call: buffers changed while they are sent, regions deregistered
      in use, queues too small, ... (docs/check.md). fatal: abort at the first;
      leaks: objects left at exit, each; overlaps: memory that two operations in
      flight write to.
  --check-exit-code N
      The exit status where something was found; else it is PROGRAM's own.
  --share
      Pages that PROGRAM registers become common memory, which peers on this host
      write to and read without a call to the kernel, several times faster. Until
      they are deregistered they are common with children of fork(2), too.
  --fabric SCENARIO
      PROGRAM's packets go through the simulated network of that file: its links,
      switches, pauses and marks, in time that goes slower than the real one. The
      simulation is started where it does not run, and ends with the last program
      in it. Simulated figures go to standard error at the end.
      docs/live_fabric.md; `verbena fabric --help`
  --nic SOCKET
      PROGRAM's device is a virtual function of the `verbena nic` that listens at
      SOCKET (docs/security.md).
  --as HOST
      The host of the scenario that PROGRAM is on, by name or number, and nobody
      else; not given: the rank, where PROGRAM is one of an MPI job. Host N is
      reached at 127.64.0.0 + N + 1, also by TCP and rdma_cm.
  --scale N
      One second simulated takes N seconds: 1000 where it is not given.
  -h, --help
      this

FAULTS
  Each rule is an action, mostly with a probability (else: always), and what it
  is for (else: everything):
    loss [P%]                     burst-loss [enter=P%] [leave=P%] [inside=P%]
    reorder [P%] [by=T]           duplicate [P%] [by=T]
    delay by=T [jitter=T]         rate limit=10Gbit [queue=T]
    corrupt [P%] [bits=N] [icrc=bad|good]
    mark [P%]                     (ECN congestion experienced)
    blackhole                     flap up=T down=T
    rnr [P%] [timer=CODE]         (a request is answered with a RNR NAK)
    nak [P%] code=sequence|invalid-request|remote-access|remote-operational
    qp-error                      cq-overrun
    registration-error [P%]
  for
    dir=tx|rx  qp=N  peer=ADDRESS  psn=A[-B]  message=A[-B]  nth=A[-B]
    every=N  count=N  from=T  for=T
    opcode=send|write|read|read-request|read-response|atomic|ack|cnp|first|...

ENVIRONMENT
  VERBENA_ADDRESS
      As --address. Unset: the interface of the default route; without one, the
      first other interface that is up; else loopback.
  VERBENA_EXPLAIN
      0: say nothing. Otherwise, where the work of a QP ends in error, a paragraph
      on standard error says which, after which packets, why, and what to try.
  VERBENA_LINK, VERBENA_FAULT, VERBENA_SEED, VERBENA_CC, VERBENA_RETRANSMISSION,
  VERBENA_CAPTURE, VERBENA_CAPTURE_LIMIT
      As --link, --fault, --seed, --cc, --retransmission, --capture and
      --capture-limit (in bytes).
  VERBENA_ENCRYPTION
      psk:FILE, or tls:cert=FILE,key=FILE,ca=FILE: RoCEv2 goes encrypted, as PSP
      packets; hosts prove who they are by TLS 1.3 (docs/security.md).
  VERBENA_NIC
      As --nic: the socket of `verbena nic`.
  VERBENA_HARDEN
      qpn, zero, refusals[=N]: random QPNs, zeros at deregistration, a limit on
      refused requests by source (docs/security.md).
  VERBENA_LOCAL
      off: all between processes of this host goes as UDP packets. Unset, or on:
      RDMA WRITEs and READs are copied, and other packets of RC go through shared
      memory, where the system lets one process reach the other's. Faults, captures
      and checks turn that off by themselves.
  VERBENA_SHARE
      on: as --share. Unset, or off: only memory that the program itself shares (a
      memfd, a file in /dev/shm) is common memory.
  VERBENA_HUGE
      off: registered memory keeps its small pages. Unset, or on: of large regions
      that peers may reach, the first 256 MiB get huge pages, twice as fast to
      copy to, soon after they are registered.
  VERBENA_CHECK, VERBENA_CHECK_EXIT_CODE
      As --check (1, or its words) and --check-exit-code.
  LD_LIBRARY_PATH
      Kept; the folder of Verbena's library is put in front.
  LD_PRELOAD
      Kept; Verbena's libverbena-paths.so is put behind it.

EXIT STATUS
  That of PROGRAM; 126 where it cannot be executed, 127 where it is not found, 2
  for wrong usage, no usable address, or no library. One line on standard error
  says what, and what to do.

EXAMPLES
  Two processes on this machine, in two terminals:
      verbena run -- ib_write_bw -q 4
      verbena run -- ib_write_bw -q 4 127.0.0.1
  Two devices, and only on these addresses:
      verbena run --address 127.0.0.1,127.0.0.2 -- ibv_devices
  A whole job:
      verbena run -- mpirun -np 2 ./program
  One packet in a hundred lost, and the third ACK:
      verbena run --seed 7 --fault 'loss 1%; loss opcode=ack nth=3' -- ib_write_bw
)";

constexpr std::string_view kDevicesHelp = R"(NAME
  verbena devices - list the devices that a program will see

SYNOPSIS
  verbena devices [--address ADDRESS[,ADDRESS...]] [--json]

DESCRIPTION
  Opens each device as a program run by `verbena run` would, and prints its
  name, interface, addresses, node GUID, port, path MTU and GID table, and
  whether UDP port 4791 of its addresses can be had.

OPTIONS
  --address ADDRESS[,ADDRESS...]
      IP addresses or interface names to stand on, one device each. Goes before
      VERBENA_ADDRESS.
  --json
      An array of objects, for programs.
  -h, --help
      this

ENVIRONMENT
  VERBENA_ADDRESS
      As --address. Unset: the interface of the default route; without one, the
      first other interface that is up; else loopback.

EXIT STATUS
  0    every device listed can be used
  2    wrong usage, no usable address, or a device that cannot be used (UDP port
       4791 is taken, say); one line on standard error says why

EXAMPLES
  verbena devices
  verbena devices --address eth0
  verbena devices --json | jq -r '.[].gids[].gid'
)";

constexpr std::string_view kStatsHelp = R"(NAME
  verbena stats - counters of running programs' devices

SYNOPSIS
  verbena stats [--watch [SECONDS]] [--json] [--prometheus [ADDRESS:]PORT]
                [--pid PID]

DESCRIPTION
  Asks every running program of this user that uses Verbena (for root: of all
  users) for its counters, and prints them: of each device with the names of
  /sys/class/infiniband/*/ports/*/counters and hw_counters, then of each QP and
  of each peer. The program is not disturbed: its helper thread answers, and
  nothing is counted or copied for this while nobody asks. Programs in another
  network namespace (a container, say) are seen from inside it.

OPTIONS
  --watch [SECONDS]
      Again and again, every second or so many seconds, with what was added per
      second; until Ctrl-C.
  --json
      An array of objects, one for each device; with --watch one line each time.
  --prometheus [ADDRESS:]PORT
      Serves http://ADDRESS:PORT/metrics in Prometheus's text format 0.0.4 until
      Ctrl-C, and prints its address first. ADDRESS: 127.0.0.1 where none is
      given; 0.0.0.0 for all. PORT 0: one that is free. Of each device 256 QPs
      and 256 peers have lines of their own.
  --pid PID
      Only that process.
  -h, --help
      this

EXIT STATUS
  0    done, or ended by SIGINT or SIGTERM
  2    wrong usage, or what was asked cannot be had; one line on standard error
       says why

EXAMPLES
  verbena stats
  verbena stats --watch 5 --pid 4711
  verbena stats --json | jq '.[].hw_counters.retransmitted_packets'
  verbena stats --prometheus 0.0.0.0:9100
)";

constexpr std::string_view kTopHelp = R"(NAME
  verbena top - the busiest QPs of running programs

SYNOPSIS
  verbena top [--interval SECONDS] [--pid PID]

DESCRIPTION
  A line for each QP of the programs that `verbena stats` sees, the busiest
  first: process, QP, type, state, peer; bytes and packets per second each way
  (TX, RX); packets sent again, RNR NAKs received, ACK timeouts and completions
  with an error since the QP was made. q or Ctrl-C ends it. Where standard
  output is no terminal, it prints once, after one interval.

OPTIONS
  --interval SECONDS
      Between two looks (default 1).
  --pid PID
      Only that process.
  -h, --help
      this

EXIT STATUS
  0    ended by q, SIGINT or SIGTERM, or printed
  2    wrong usage, or what was asked cannot be had
)";

constexpr std::string_view kDoctorHelp = R"(NAME
  verbena doctor - what is right and wrong here, and on the way to a peer

SYNOPSIS
  verbena doctor [--address ADDRESS[,ADDRESS...]] [--json] [PEER]
  verbena doctor [--address ADDRESS[,ADDRESS...]] --listen

DESCRIPTION
  Looks at what programs run by `verbena run` would stand on, one line for each
  finding: ok, warning or problem, and what to do, as a command where there is
  one. Addresses, GIDs, MTU, UDP port 4791 (and who has
  it), the BPF steering between processes, a real exchange with ourselves,
  socket buffers and the windows that follow from them, GSO and GRO, CPUs, clock
  and versions.

  With PEER, an address or a name, also the way there: connection management
  messages that every RoCEv2 device answers (a DREQ for a connection that is not
  there: DREP) tell of round trip time, loss and ECN. PEER must run something:
  any program on Verbena or on another RDMA device, or `verbena doctor
  --listen`, which also tells what arrived, so that path MTU and ECN can be
  judged both ways.

OPTIONS
  --address ADDRESS[,ADDRESS...]
      IP addresses or interface names to stand on. Goes before VERBENA_ADDRESS.
  --listen
      Answers the doctors of others until Ctrl-C.
  --json
      An object with an array of findings.
  -h, --help
      this

EXIT STATUS
  0    all is well, or there are warnings only
  1    there is a problem
  2    wrong usage

EXAMPLES
  verbena doctor
  verbena doctor 10.0.0.2
  verbena doctor --json | jq -r '.findings[] | select(.verdict != "ok").fix'
)";

constexpr std::string_view kSimHelp = R"(NAME
  verbena sim - what will this network do?

SYNOPSIS
  verbena sim [SCENARIO] [--output FOLDER] [--seed N] [--threads N]
              [--set KEY=VALUE]... [--expect EXPECTATION]... [--json]
  verbena sim [SCENARIO] --sweep KEY=VALUE,VALUE,...
  verbena sim --compare SCENARIO SCENARIO...

DESCRIPTION
  Runs the same RDMA devices that programs use on a simulated network: links,
  switches with shared buffers, PFC, ECN and ECMP, and congestion control. Prints
  a summary. Without SCENARIO it runs an example and says what it shows.

  SCENARIO is a file in YAML, or - for standard input. Two lines are enough:

    topology: star          # fat_tree, leaf_spine, rail_optimized, dumbbell, import
    workload: incast        # permutation, all_to_all, poisson, flows

  docs/simulator.md has all keys, and examples/ scenarios to begin with. A mistake
  is told in one line, with file, line, key and what would be right.

  With `collective: all reduce` instead of a workload, or with a preset, SCENARIO is
  a job: GPUs do a collective operation by each algorithm, and a table tells time,
  bandwidth and where the time went. docs/jobs.md has its keys.

  A folder instead is a scenario of HPCC's ns-3 model (config.txt, and the topology
  and flow files that it names), run with that model's conventions. Its results are
  in that model's formats: fct.txt, pfc.txt and stdout.txt.

  While it runs, standard error shows how far it is. After SIGINT or SIGTERM the
  results so far are written, marked as interrupted.

OPTIONS
  -o FOLDER, --output FOLDER
      Where the results go: results.sqlite (flows, queues, pauses, marks, rates,
      links), report.html (charts; needs no network) and summary.txt; of a job also
      its timeline, messages and what GPUs did (docs/jobs.md). Of a sweep or
      comparison: a folder for each run, table.csv and table.html. While
      results.sqlite is being written it is results.sqlite.part.
  --seed N
      Of all that is random: arrivals, who sends to whom, which frames are marked or
      lost. The same scenario and seed give the same results, to the byte; 1 where
      neither this nor the scenario says.
  --threads N
      How many simulate one scenario at the same time; 1 where none is given. The
      results are the same with any number.
  --set KEY=VALUE
      As if the scenario said so. KEY is a key's path (switch.ecn.kmin), or as much
      of its end as no other key has (kmin). VALUE may be a list or a mapping, as in
      a file: 'faults=[{down: h0-s0, for: 1ms}]'. Several are allowed.
  --sweep KEY=VALUE,VALUE,...
      Runs it with each value, and prints the results side by side. Several sweeps
      make a grid. All cores are used; the results do not depend on how many. Under
      mpirun (Open MPI) the runs are shared out to its processes, and the first one
      prints the same table.
  --capture LINK
      Writes the frames of a link (h0-s0) to capture.pcapng in the output folder, for
      Wireshark; several are allowed. Payload is not simulated: its octets are 0.
  --compare SCENARIO SCENARIO...
      Runs them all, and prints the results side by side.
  --expect EXPECTATION
      What the result has to be: 'drops == 0', 'fct.p99 < 2ms', 'ring.busbw >
      45GB/s', 'outcome == complete'. Several are allowed; of a sweep each run is
      judged. One that names no number is told before the run, with all there are. A
      scenario has some of its own under `assert`.
  --json
      The summary as JSON, instead of text: "metrics" are the numbers that --expect
      names, in seconds, octets, bits a second (bandwidths of jobs: octets a second),
      parts of 1; null where there is none. Of a sweep or comparison: "runs".
  --junit FILE
      A report of the expectations in JUnit's XML.
  -h, --help
      this

EXIT STATUS
  0    done
  2    wrong usage, or the scenario has a mistake: one line says where
  3    the result is not as expected; a line for each expectation says what it is
  130  interrupted; what there is was written

EXAMPLES
  verbena sim
  verbena sim examples/incast.yaml -o /tmp/incast
  verbena sim examples/ecn_tuning.yaml --sweep kmin=20k,100k,400k
  verbena sim - --expect 'drops == 0' --json < scenario.yaml
  verbena sim --compare examples/incast.yaml examples/incast_without_pfc.yaml
)";

constexpr std::string_view kNICHelp = R"(NAME
  verbena nic - virtual functions for programs that do not trust each other

SYNOPSIS
  verbena nic FILE
  verbena nic status FILE | SOCKET
  verbena run --nic SOCKET -- PROGRAM [ARGUMENT...]

DESCRIPTION
  Owns the addresses of the functions that FILE lists. Programs attach by a Unix
  socket; their packets pass through shared rings and this process, which lets
  out only what the function may send: from its addresses, in its partitions, at
  its rate, encrypted where FILE says so. Runs until SIGINT or SIGTERM. SIGHUP
  reads FILE again: functions keep their programs. docs/security.md has the file.
  `status` prints functions, programs and counters as JSON.

EXIT STATUS
  0  stopped by a signal, or the status was printed
  2  it cannot: the file, an address, the socket
)";

constexpr std::string_view kDefaultHelp = R"(NAME
  verbena default - Verbena for all programs of a system

SYNOPSIS
  verbena default [on | off | status] [--root FOLDER]

DESCRIPTION
  `on` makes Verbena's libibverbs, librdmacm and libibumad the ones that the
  dynamic loader finds first, so that programs use Verbena without `verbena run`.
  `off` undoes it. Without a word, or with `status`, it prints which it is.
  `on` and `off` need root.

  `on` writes one file and runs ldconfig(8); `off` removes the file and runs
  ldconfig again. Debian's package removes the file when it is removed itself.
  Programs that run already keep the libraries they have loaded. What runs under
  `verbena run` is the same in both states.

  Options of `verbena run` are then variables of the environment: see its
  section ENVIRONMENT. The files of the device in /dev and /sys exist only under
  `verbena run`. So NCCL, UCX and Open MPI, which look for these files, need
  `verbena run` still: put it before mpirun, or run a whole session in it with
  `verbena run -- bash`.

OPTIONS
  --root FOLDER  changes the system whose root is FOLDER, as ldconfig -r does;
                 Verbena has the same path there
  -h, --help     this

FILES
  /etc/ld.so.conf.d/00-verbena.conf  the folder of the libraries, while it is on

EXIT STATUS
  0  done
  2  wrong usage, or the file or the loader's cache cannot be written

EXAMPLES
  sudo verbena default on && ibv_devinfo && sudo verbena default off
)";

constexpr std::string_view kTestHelp = R"(NAME
  verbena test - run a test on several hosts of its own

SYNOPSIS
  verbena test [-n HOSTS] [OPTIONS] [--] COMMAND [ARGUMENT...]
  verbena test [OPTIONS] [--] COMMAND [ARGUMENT...] : COMMAND [ARGUMENT...] ...

DESCRIPTION
  Runs COMMAND on each of so many virtual hosts, or a command of its own on
  each, as `verbena run` does, and says whether all have succeeded. Hosts are
  network namespaces that a bridge joins, 10.77.0.1, 10.77.0.2 and so on, and
  fd77::1, ... on interface net0: they need no privilege where user namespaces
  are permitted. Elsewhere they are addresses of loopback. They share no memory,
  so packets, faults and captures are as between machines.

  In arguments, {host0} is the address of the first host, {host1} of the second,
  and {host} the host's own number. Programs find the same in the environment:
  VERBENA_TEST_HOST, VERBENA_TEST_HOSTS and VERBENA_TEST_HOST0, ...

  When the command of the last host has ended, or one has failed, the others
  have --grace seconds to end. Then they are told to (SIGTERM), which is no
  failure: so a server that serves for ever goes first.

  What fails is run once more with --check and a capture of each host, into the
  folder of --output or one for temporary files, which a line names.

OPTIONS
  -n, --hosts N      hosts, 1 to 200 (2; with several commands, as many)
  --fault RULES, --fault-file FILE, --seed N, --link NAME, --cc NAME,
  --retransmission NAME, --check[=WORDS], --check-exit-code N,
  --capture-limit SIZE
                     as for `verbena run`
  --timeout SECONDS  of all of it (600); then the exit status is 124
  --grace SECONDS    (10)
  --delay SECONDS    the next host's command starts when the one before listens on
                     a TCP port, or after so long (1; 0 where commands are the
                     same)
  -o, --output FOLDER
                     what each host printed (host0.log, ...), and captures
  --capture          host0.pcapng, ... there, whether it fails or not
  --junit FILE       the result as JUnit's XML, a test case for each host
  --name NAME        of the test, there
  --no-rerun         what fails is not run again
  --loopback         addresses of loopback instead of namespaces
  -h, --help         this

EXIT STATUS
  0    all have succeeded
  124  the time was over
  130  interrupted
  Otherwise that of the command that failed first; 128 + N: ended by signal N.

EXAMPLES
  verbena test -- ib_write_bw : ib_write_bw {host0}
  verbena test --fault 'loss 1%' --seed 7 -- ./server : ./client {host0}
  verbena test -n 4 --junit result.xml -- ./all_to_all --rank {host}
)";

constexpr std::string_view kCollHelp = R"(NAME
  verbena coll - how fast collective operations are

SYNOPSIS
  verbena coll [OPERATION] [-n RANKS] [OPTIONS]
  mpirun -n RANKS verbena coll [OPERATION] [OPTIONS]
  torchrun --nproc_per_node RANKS --no_python verbena coll [OPERATION] [OPTIONS]

DESCRIPTION
  Runs an operation of libverbena-coll between processes and prints the table
  of nccl-tests: for each size the time, the bandwidth of the algorithm and of
  the bus, and the number of wrong elements. docs/collectives.md says what the
  library does. Exit status 1: an element was wrong, or a rank failed.

OPERATIONS
  all_reduce (the default), all_gather, reduce_scatter, broadcast, reduce,
  alltoall, gather, scatter, sendrecv

OPTIONS
  -n, --ranks N         ranks to start (2)
  -b, --min SIZE        from this size (8) ...
  -e, --max SIZE        ... to this one (64M): bytes, or 4K, 16M, 1G
  -f, --factor N        each size is N times the one before (2)
  -i, --step SIZE       or so many bytes more
  -d, --type TYPE       int8, uint8, int32, int64, half, bfloat16, float, double
  -o, --op OP           sum, prod, min, max, avg, band, bor, bxor
  -r, --root RANK       of broadcast, reduce, gather and scatter (0)
  -w, --warmup N        operations before those that are timed (5)
  --iters N             operations that are timed (20)
  --check, --no-check   whether every element is verified (it is)
  --register            the buffers are registered once, not by each operation
  --algorithm NAME      direct, one-shot, ring, tree, double-tree, hierarchical,
                        halving-doubling, rail-ring; where it can do it
  --table FILE          which algorithm for which size
  --tune FILE           tries all algorithms, and writes the table of the fastest
                        and what the simulator needs to predict
  --predict FILE        prints what the simulator predicts from that beside what
                        is measured (ranks of one host)
  --timeout SECONDS     of the rendezvous and each operation (30)
  --rendezvous ADDRESS  tcp://HOST:PORT, file://PATH or env://
  --address ADDRESS, --fault RULES, --seed N
                        as for `verbena run`

EXAMPLES
  verbena coll -n 4 -b 8 -e 64M
  verbena coll reduce_scatter -d bfloat16 -o avg --check
  verbena coll --fault 'loss 1%' -e 1M
)";

constexpr std::string_view kModelHelp = R"(NAME
  verbena model - serve and load models by one-sided RDMA

SYNOPSIS
  verbena model serve FOLDER|FILE [--listen HOST:PORT] [--chunk SIZE] [--verbose]
  verbena model fetch SOURCE[,SOURCE...] TARGET [--tensor PATTERN]...
              [--tp RANK/SIZE [--rows PATTERN]... [--columns PATTERN]...]
              [--memory] [--no-serve] [--stay] [--no-verify] [--json]

DESCRIPTION
  serve maps the files, hashes their chunks by BLAKE3 and prints its address.
  Safetensors files with a wrong header are refused.

  fetch READs what it needs from the memory of all sources, compares the hash of
  each chunk and writes it to the target. Whoever has fetched a chunk
  gives it to other fetchers, so that one source feeds many. A target has the name
  FILE.part until it is complete; fetch goes on where an earlier one was ended,
  and keeps of it the chunks whose hashes match. docs/transfer.md says more.

OPTIONS OF serve
  --listen HOST:PORT   where fetchers come; the device's address and any port
                       where it is not given
  --chunk SIZE         4K to 64M; 1M where it is not given
  --queue-pairs N      for each device and fetcher (1)
  --verbose            a line on standard error for each fetcher

OPTIONS OF fetch
  --tensor PATTERN     only tensors with such names ('model.layers.0.*'), into one
                       safetensors file, TARGET
  --tp RANK/SIZE       only the part of that rank: q, k, v, gate and up projections,
                       embeddings and lm_head by rows, o and down projections by
                       columns, others whole
  --rows PATTERN, --columns PATTERN
                       tensors that are split so, instead
  --memory             into memory, to see how fast that is; without a TARGET
  --no-serve           other fetchers get nothing from this one
  --stay               after all is there, goes on serving until Ctrl-C
  --no-verify          hashes are not compared
  --timeout SECONDS    without any progress (30)
  --in-flight N        chunks that are read at a time (4)
  --queue-pairs N      for each device and source (1)
  --json               the result as JSON
  --address ADDRESS, --link NAME, --fault RULES, --seed N
                       as for `verbena run`

EXIT STATUS
  0    done
  1    failed; one line on standard error says why. TARGET is whole, or not there
  2    wrong usage

EXAMPLES
  verbena model serve llama/ --listen 10.0.0.1:7000
  verbena model fetch 10.0.0.1:7000 /models/llama
  verbena model fetch 10.0.0.1:7000 rank3.safetensors --tp 3/8
)";

constexpr std::string_view kBenchHelp = R"(NAME
  verbena bench - how fast KV caches and GPUs' memories move here

SYNOPSIS
  verbena bench kv [--model NAME] [--tokens N] [OPTIONS]
  verbena bench gpu-paths [--size SIZE] [--count N] [--driver FILE] [--rate RATE]
                          [--predict] [--address ADDRESS]

DESCRIPTION
  kv: a prefill and a decode process on this host, with paged KV caches as vLLM
  and SGLang have them. Blocks of each layer are written to the decode process
  while the next layer is computed. Prints blocks a second, GB/s, the time that a
  whole transfer takes, and how much time to first token it adds, for RoCEv2 and
  iWARP; beside them the same bytes in one WRITE, and over TCP. docs/transfer.md
  says more.

  gpu-paths: moves messages from GPU memory to GPU memory in three ways: through
  host memory and TCP (kernel_tcp, six steps), through host memory and RDMA
  (host_rdma), and by RDMA of GPU memory (gpudirect). Prints the time, copies and
  CPU time of a message beside what the simulator's host path has for cards. Both
  ends are in one process and on the first GPU. docs/gpu.md says what GPU memory
  needs.

OPTIONS OF kv
  --model NAME         llama3-8b, llama3-70b (the default), llama3-405b,
                       deepseek-v3, qwen2.5-72b
  --tokens N           of the prompt (4096)
  --block-tokens N     tokens of a block (16)
  --block SIZE         octets of a block instead of the model's
  --blocks N           blocks instead of the prompt's
  --tp N               ranks that share the model's heads (8)
  --requests N         requests at a time (1)
  --iterations N       that are timed (10)
  --compute MICROSECONDS
                       that a layer is computed; 0 where it is not given
  --baseline NAMES     of contiguous, tcp; both where not given, or none
  --json               an object for each technology
  --link NAME          only that link: udp, packet, xdp (RoCEv2) or iwarp
  --address ADDRESS, --fault RULES, --seed N
                       as for `verbena run`; faults are for RoCEv2

OPTIONS OF gpu-paths
  --size SIZE     bytes of a message, 1 to 1G; 1M where it is not given
  --count N       messages that are measured; 200 where it is not given
  --driver FILE   the CUDA driver; libcuda.so.1 where it is not given
  --rate RATE     of the network in the prediction; 400G where it is not given
  --predict       measures nothing, and needs no GPU
  --address ADDRESS
                  where the device stands; `verbena --help`

EXAMPLES
  verbena bench kv --model llama3-70b
  verbena bench kv --blocks 1280 --block 64K
  verbena bench gpu-paths
  verbena bench gpu-paths --predict --size 512K --rate 100G
)";

constexpr std::string_view kNVMfHelp = R"(NAME
  verbena nvmf - a target and a host of NVMe over Fabrics

SYNOPSIS
  verbena nvmf target --nqn NQN --namespace SPEC... [--allow-host NQN]...
                      --listen ADDRESS[:PORT] [OPTIONS]
  verbena nvmf discover ADDRESS[:PORT] [--persistent] [--json]
  verbena nvmf connect ADDRESS[:PORT] --nqn NQN [--hold] [--json]
  verbena nvmf read ADDRESS[:PORT] --nqn NQN [--output FILE] [RANGE]
  verbena nvmf write ADDRESS[:PORT] --nqn NQN [--input FILE] [RANGE]
  verbena nvmf bench ADDRESS[:PORT] --nqn NQN [--rw PATTERN] [OPTIONS]

DESCRIPTION
  The target offers files and memory as NVMe namespaces over RDMA; Linux's
  nvme-rdma connects to it, and so do the other commands here. They connect to
  any target, Linux's nvmet-rdma among them. The port is 4420 unless given.
  docs/nvmf.md says more.

TARGET
  --nqn NQN           a subsystem. The options up to the next --nqn are its own
  --namespace SPEC    FILE or memory:SIZE, then ,block=512|4096 ,readonly
                      ,direct=on|off|auto (O_DIRECT). The first is namespace 1
  --allow-host NQN    a host that may connect; without any, all may
  --host-key NQN=FILE a host that may connect after it has authenticated itself
                      by DH-HMAC-CHAP with the key in that file
  --controller-key FILE
                      with which the subsystem authenticates itself, if asked
  --auth-hash NAME    sha256, sha384 or sha512: accepts no other
  --dh-group NAME     null, ffdhe2048, 3072, 4096, 6144 or 8192: accepts no other
  --listen ADDRESS    of the device, with a port or without
  --queue-depth N     entries of a queue, at most (128)
  --in-capsule SIZE   data that a host may put into a command (8K)
  --drain SECONDS     for outstanding commands after SIGTERM (10)
  --poll              polls instead of sleeping: less latency, one busy core

HOST
  --host-nqn NQN      of this host (made of its name)
  --host-key FILE     authenticates it: a secret of `nvme gen-dhchap-key`
  --controller-key FILE
                      the target has to authenticate itself with this one
  --auth-hash, --dh-group
                      as above: offers no other
  --queues N          I/O queues (1)
  --queue-depth N     entries of each (128)
  --keep-alive S      keep-alive timeout in seconds; 0: none (5)
  --ctrl-loss-tmo S   how long a lost target is waited for (600)
  --reconnect-delay S between attempts (1)
  --poll              as above
  --hold              connect: stays connected until a signal
  --persistent        discover: prints again when the target tells of a change

RANGE
  --nsid N            the namespace (1)
  --offset SIZE       in octets, a multiple of its block size (0)
  --length SIZE       to the end, unless given
  --output, --input   a file; standard output and input unless given

BENCH
  --rw PATTERN        read, write, randread or randwrite (randread)
  --block SIZE        of each command (4K)
  --depth N           commands at a time (32)
  --seconds S         (5)

DEVICE
  --address, --link, --fault, --seed, --capture, --cc
                      as for `verbena run`. The address is the one that a target
                      listens on, or from which a host reaches its target

EXIT STATUS
  0    done
  1    it failed; one line on standard error says why
  2    wrong usage

EXAMPLES
  verbena nvmf target --nqn nqn.2026-01.io.example:disk --namespace disk.img \
      --namespace memory:1G,block=4096 --listen 10.0.0.1
  verbena nvmf discover 10.0.0.1
  verbena nvmf write 10.0.0.1 --nqn nqn.2026-01.io.example:disk < image
  verbena nvmf bench 10.0.0.1 --nqn nqn.2026-01.io.example:disk --nsid 2 --depth 64
)";

constexpr std::string_view kFabricHelp = R"(NAME
  verbena fabric - a simulated network for running programs

SYNOPSIS
  verbena fabric SCENARIO [--set KEY=VALUE]... [--scale N]
  verbena fabric SCENARIO [--unplug CABLE]... [--plug CABLE]...

DESCRIPTION
  Simulates the network of SCENARIO, a file as `verbena sim` has it (workload may
  be left out), for programs that `verbena run --fabric SCENARIO --as HOST` puts
  on its hosts: their packets wait in the simulated NIC, are paused, marked and
  dropped as simulated ones are, beside the flows of the scenario itself. Time
  begins with the first packet of a program, and goes slower than the real one.

  `verbena run --fabric` starts it by itself, where it does not run. Started by
  hand, it stays until Ctrl-C, and then prints, in simulated time: what each host
  with a program has sent and received, its throughput, pauses, marks, and how
  long packets took; marks, pauses and drops of the whole network.

  Technology rocev2 (docs/live_fabric.md) or infiniband (docs/infiniband.md). On
  InfiniBand the ports are in state Init until a subnet manager has swept:
  `verbena run --fabric SCENARIO --as HOST -- opensm`.

OPTIONS
  --set KEY=VALUE   as in `verbena sim`
  --scale N         one second simulated takes N seconds, 1 to 1000000; 1000
                    where it is not given. Programs answer in real time: the
                    larger N, the less that matters
  --unplug CABLE    of the fabric of SCENARIO that runs (InfiniBand alone): pulls
                    a cable (leaf0-spine1), or all cables of a node (spine1)
  --plug CABLE      puts it in again
  -h, --help        this

EXIT STATUS
  0    stopped
  2    wrong usage, or the file has a mistake

EXAMPLES
  verbena run --fabric examples/live_incast.yaml --as h0 -- ib_write_bw -n 20 &
  verbena run --fabric examples/live_incast.yaml --as h1 -- ib_write_bw -n 20 \
      127.64.0.1
  verbena fabric examples/live_incast.yaml --scale 200
)";

constexpr std::string_view kPlanHelp = R"(NAME
  verbena plan - which technology for my job? What are switches and NICs to be
                 set to?

SYNOPSIS
  verbena plan JOB [--technologies NAMES] [--topologies NAMES] [-o FOLDER]
               [--set KEY=VALUE]... [--seed N] [--cable METRES] [--threads N]
  verbena plan [--rate RATE] [--cable METRES] [--mtu OCTETS]
               [--buffer SIZE] [--ports N]
               [--sonic | --nvue | --eos | --nic] [--interfaces NAMES]
  verbena plan --catalogue | --host-path

DESCRIPTION
  With a JOB (docs/jobs.md): simulates it with each technology on the same
  topology and links, and prints a table: time, bus bandwidth, 99th percentile
  of messages' latency, CPU cores, price and power of the network, and what must
  be tuned. Then what it recommends, why, and what would change it, and for
  RoCEv2 a proof of the settings in the worst incast at one switch.
  docs/planning.md explains each number. What a file says of other technologies
  is left out where one has no use for it.

  Without: computes for links of one rate and length: PFC headroom with its parts, ECN
  thresholds, DCQCN parameters, priorities. docs/jobs.md has the formulas'
  sources. Configurations for switches and NICs set what public manuals
  support; a comment in them tells what is left out.

OPTIONS
  --technologies NAMES
                    of rocev2, infiniband, iwarp, tcp; all where not given
  --topologies NAMES
                    instead of the job's, each: star, leaf_spine, fat_tree,
                    rail_optimized, rail_only, dual_tor, as large as its GPUs
                    need; or files with `topology` (and `links`)
  -o, --output FOLDER
                    plan.txt, plan.html, results.sqlite with every number, settings for
                    SONiC, NVUE, EOS and NICs; for presets of clouds,
                    deployment.md and blueprint.yaml
  --json            prints the table as JSON instead of text
  --set KEY=VALUE   as verbena sim has it; --seed N likewise
  --threads N       simulations at a time; as many as cores where not given
  --rate RATE       of the links: 100Gbps, 400G; 400 Gb/s where it is not given
  --cable METRES    30m; 30 where it is not given; with a JOB, what the links'
                    delays stand for at 5 ns/m
  --mtu OCTETS      path MTU of RoCEv2; 4096 where it is not given
  --buffer SIZE     packet memory of a switch, as 64MiB: says whether switches
                    mark before they pause, even if all ports are congested
  --ports N         of that switch; 64 where it is not given
  --sonic           prints tables of SONiC's config_db.json instead
  --nvue            prints commands of NVUE (Cumulus Linux) instead
  --eos             prints configuration for Arista EOS instead
  --nic             prints a shell script for NICs instead: sh SCRIPT mlx5 eth2
                    mlx5_0 (mlx5, irdma or bnxt_re; as root)
  --interfaces NAMES
                    of a switch, as Ethernet0,Ethernet8, for --sonic and --eos;
                    Ethernet0 (EOS: Ethernet1/1) where they are not given
  --catalogue       prints NICs, switches and cables, with prices, watts and the
                    sources of the data
  --host-path       prints the steps between a GPU's memory and the NIC, with
                    latency, rate, CPU time and sources, of kernel TCP, TCP with
                    payload in GPU memory, host RDMA and GPUDirect RDMA
  -h, --help        this

EXIT STATUS
  0    done
  2    wrong usage, or the job has a mistake: one line says where
  130  interrupted; what there is was printed

EXAMPLES
  verbena plan examples/allreduce_rails.yaml -o plan/
  verbena plan job.yaml --technologies rocev2,infiniband --topologies fat_tree,rail_only
  verbena plan --rate 400G --cable 100m --buffer 64MiB --ports 32
  verbena plan --rate 100G --cable 5m --sonic --interfaces Ethernet0,Ethernet8
  verbena plan --rate 400G --cable 30m --nic > roce.sh
)";

}  // namespace

std::string_view help_text(HelpTopic topic) {
  switch (topic) {
    case HelpTopic::kVerbena: return kVerbenaHelp;
    case HelpTopic::kRun: return kRunHelp;
    case HelpTopic::kDevices: return kDevicesHelp;
    case HelpTopic::kStats: return kStatsHelp;
    case HelpTopic::kTop: return kTopHelp;
    case HelpTopic::kDoctor: return kDoctorHelp;
    case HelpTopic::kSim: return kSimHelp;
    case HelpTopic::kPlan: return kPlanHelp;
    case HelpTopic::kFabric: return kFabricHelp;
    case HelpTopic::kTest: return kTestHelp;
    case HelpTopic::kNIC: return kNICHelp;
    case HelpTopic::kDefault: return kDefaultHelp;
    case HelpTopic::kColl: return kCollHelp;
    case HelpTopic::kModel: return kModelHelp;
    case HelpTopic::kBench: return kBenchHelp;
    case HelpTopic::kNVMf: return kNVMfHelp;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::cli
