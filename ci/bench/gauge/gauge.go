// Package gauge reads the resources that processes use, from /proc.
package gauge

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const tick = time.Second / 100 // USER_HZ is 100 on every Linux

// usage is one line of /proc/PID/stat.
type usage struct {
	parent int
	own    time.Duration // user + system, all threads
	waited time.Duration // of children that have ended and were waited for
}

func read(pid int) (u usage, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])) // the name before it may contain anything
	var n [5]int
	for i, at := range [...]int{1, 11, 12, 13, 14} {
		if n[i], err = strconv.Atoi(f[at]); err != nil {
			return u, fmt.Errorf("gauge: stat of %d: %w", pid, err)
		}
	}
	return usage{n[0], time.Duration(n[1]+n[2]) * tick, time.Duration(n[3]+n[4]) * tick}, nil
}

// CPU returns the CPU time of a process, user and system.
func CPU(pid int) (time.Duration, error) {
	u, err := read(pid)
	return u.own, err
}

// Family returns the CPU time of a process and its children, ended ones included, and the number
// of current children.
func Family(pid int) (used time.Duration, children int, err error) {
	head, err := read(pid)
	if err != nil {
		return 0, 0, err
	}
	used = head.own + head.waited
	below, err := childrenOf(pid)
	for _, u := range below {
		used += u.own + u.waited
	}
	return used, len(below), err
}

// Resident returns the resident memory of a process and its children in bytes; shared memory
// counts for each.
func Resident(pid int) (now int64, err error) {
	below, err := childrenOf(pid)
	if err != nil {
		return 0, err
	}
	now, _, err = Memory(pid)
	for id := range below {
		if own, _, err := Memory(id); err == nil {
			now += own
		}
	}
	return now, err
}

// childrenOf returns the usage of the current children.
func childrenOf(pid int) (map[int]usage, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	found := make(map[int]usage)
	for _, dir := range all {
		id, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if u, err := read(id); err == nil && u.parent == pid { // others may end meanwhile
			found[id] = u
		}
	}
	return found, nil
}

// Own returns the CPU time of this process and of the children that it has waited for.
func Own() (used time.Duration) {
	for _, of := range [...]int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(of, &u); err != nil {
			panic(fmt.Sprintf("gauge: getrusage: %v", err)) // cannot fail
		}
		used += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return used
}

// Machine returns the busy and total CPU time of the machine.
func Machine() (busy, total time.Duration, err error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	for i, text := range strings.Fields(line)[1:9] { // user nice system idle iowait irq softirq steal
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, 0, fmt.Errorf("gauge: /proc/stat: %w", err)
		}
		total += time.Duration(n) * tick
		if i != 3 && i != 4 {
			busy += time.Duration(n) * tick
		}
	}
	return busy, total, nil
}

// Memory returns the current and largest resident memory of a process, in bytes.
func Memory(pid int) (now, most int64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "VmRSS:" && f[0] != "VmHWM:" {
			continue
		}
		kib, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("gauge: status of %d: %w", pid, err)
		}
		if f[0] == "VmRSS:" {
			now = kib << 10
		} else {
			most = kib << 10
		}
	}
	return now, most, nil
}
