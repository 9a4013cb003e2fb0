#!/usr/bin/env bash
# A real SLURM with one node, on a Debian machine of one's own, as root and without systemd: `scripts/one_node_slurm.sh start|stop`.
# First: apt-get install slurm-wlm munge. For tests only: nothing listens beyond loopback, and accounting is off.
set -euo pipefail

conf=/etc/slurm/slurm.conf
state=/var/lib/unlazy-slurm

start() {
  command -v slurmctld >/dev/null || { echo "SLURM is not installed: apt-get install slurm-wlm munge" >&2; exit 1; }
  mkdir -p "$state/ctld" "$state/d" /etc/slurm /run/munge /var/log/munge
  chown munge: /run/munge /var/log/munge /var/lib/munge /etc/munge
  if [ ! -s /etc/munge/munge.key ]; then
    dd if=/dev/urandom bs=1 count=1024 2>/dev/null >/etc/munge/munge.key
  fi
  chown munge: /etc/munge/munge.key && chmod 400 /etc/munge/munge.key
  pgrep -x munged >/dev/null || setpriv --reuid=munge --regid=munge --clear-groups munged --force 2>/dev/null
  name=$(hostname -s)
  cat >"$conf" <<CONF
ClusterName=unlazy
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
MpiDefault=none
JobRequeue=1
KillWait=5
MinJobAge=30
SlurmctldPidFile=$state/slurmctld.pid
SlurmdPidFile=$state/slurmd.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/slurmd.log
StateSaveLocation=$state/ctld
SlurmdSpoolDir=$state/d
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  pgrep -x slurmctld >/dev/null || slurmctld
  pgrep -x slurmd >/dev/null || slurmd
  for _ in $(seq 30); do sinfo -h -o %T 2>/dev/null | grep -qE 'idle|mixed|allocated' && { sinfo; exit 0; }; sleep 1; done
  echo "SLURM does not answer; see $state/*.log" >&2
  exit 1
}

stop() {
  for daemon in slurmd slurmctld; do [ -s "$state/$daemon.pid" ] && kill "$(cat "$state/$daemon.pid")" || true; done
}

case "${1:-}" in start) start ;; stop) stop ;; *) echo "usage: $0 start|stop" >&2; exit 2 ;; esac
