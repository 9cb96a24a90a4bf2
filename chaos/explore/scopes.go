package explore

// named is a plan, the size of its table, and what it must show.
type named struct {
	name string
	room int
	plan Plan
	want []sight
}

// scopes are explored by every run.
func scopes() []named {
	pay, pay3 := transfer(1, "ann", "bob", 3, 1), transfer(3, "ann", "bob", 3, 1)
	return []named{
		{"first start", 1 << 20, Plan{empty: true, powers: 2, kills: 1, torn: true, scripts: [][]wish{{issue(1, "ann", 5)}}},
			[]sight{sawAnswer, sawReplay, sawTail, sawLost, sawAgain, sawTorn, sawAcknowledged}},
		{"the same key twice, and power", 1 << 22, Plan{first: []wish{issue(0, "ann", 5)}, powers: 1, torn: true,
			scripts: [][]wish{{pay, burn(2, "ann", 5, 2)}, {pay, transfer(1, "ann", "bob", 4, 1)}}},
			[]sight{sawAnswer, sawReplay, sawConflict, sawRefusal, sawWait, sawTail, sawLost, sawTorn, sawAcknowledged}},
		{"a kill, then power", 1 << 22, Plan{first: []wish{issue(0, "ann", 5)}, powers: 1, kills: 1,
			scripts: [][]wish{{pay}, {burn(2, "ann", 3, 1)}}},
			[]sight{sawAnswer, sawReplay, sawRefusal, sawTail, sawLost, sawAgain, sawAcknowledged}},
		{"a sync that fails", 1 << 22, Plan{first: []wish{issue(0, "ann", 5)}, powers: 1, kills: 1, fails: 1,
			scripts: [][]wish{{pay}, {issue(2, "bob", 2)}}},
			[]sight{sawAnswer, sawUnknown, sawFailed, sawReplay, sawTail, sawLost}},
		{"clients that leave", 1 << 22, Plan{first: []wish{issue(0, "ann", 5)}, leaves: 2, powers: 1, waiters: 1,
			scripts: [][]wish{{pay, issue(2, "ann", 1)}, {pay}}},
			[]sight{sawAnswer, sawReplay, sawLeft, sawAcknowledged}},
		{"a disk that takes its time", 1 << 22, Plan{first: []wish{issue(0, "ann", 5)}, passes: 4, powers: 1, patience: 2 * second, waiters: 1,
			scripts: [][]wish{{pay}, {pay}}},
			[]sight{sawAnswer, sawReplay, sawUnknown, sawWait, sawAcknowledged}},
		{"a hold, and its end", 1 << 22, Plan{first: []wish{issue(0, "ann", 9)}, jumps: 1, passes: 1, jump: 2 * second, powers: 1,
			scripts: [][]wish{{hold(1, "ann", 6, 1, 3*second/2), capture(2, 1, "ann", "bob", 4)}, {release(3, 1, "ann")}}},
			[]sight{sawAnswer, sawReplay, sawRefusal, sawLapsed, sawCaptured, sawReleased, sawAcknowledged}},
		{"what is held is not paid", 1 << 22, Plan{first: []wish{issue(0, "ann", 9), hold(1, "ann", 6, 1, 3*second/2)}, jumps: 1, jump: 2 * second, powers: 1,
			scripts: [][]wish{{transfer(2, "ann", "bob", 5, 2)}, {capture(3, 1, "ann", "bob", 4)}}},
			[]sight{sawAnswer, sawReplay, sawRefusal, sawLapsed, sawCaptured, sawAcknowledged}},
		{"keys that leave the window", 1 << 22, Plan{first: []wish{issue(0, "ann", 9)}, keys: 3, ttl: 8 * second, trail: 2 * second,
			jumps: 1, jump: 3 * second, tables: 1, tries: 1, heartbeat: 9 * second,
			scripts: [][]wish{{pay, pay}, {issue(2, "bob", 1)}}},
			[]sight{sawAnswer, sawReplay, sawForgot, sawIndexed}},
		{"an index that is lost", 1 << 22, Plan{first: []wish{issue(0, "ann", 9)}, keys: 3, ttl: 8 * second, trail: 2 * second,
			jumps: 1, jump: 3 * second, powers: 1, tables: 1, lost: true, heartbeat: 9 * second,
			scripts: [][]wish{{pay, issue(0, "ann", 9)}}},
			[]sight{sawAnswer, sawReplay, sawForgot, sawIndexed, sawSentBack, sawAcknowledged}},
		{"keys that are over", 1 << 22, Plan{first: []wish{issue(0, "ann", 9)}, keys: 3, ttl: 4 * second, trail: 2 * second,
			jumps: 1, jump: 5 * second, kills: 1, tables: 2, tries: 1, heartbeat: 9 * second,
			scripts: [][]wish{{pay, transfer(1, "ann", "bob", 4, 2)}}},
			[]sight{sawAnswer, sawConflict, sawForgot, sawAcknowledged}},
		{"a drain", 1 << 22, Plan{first: []wish{issue(0, "ann", 5)}, drains: 1, aborts: 1, slow: true, downs: 1, waiters: 1, tries: 1,
			scripts: [][]wish{{pay}, {pay}}},
			[]sight{sawAnswer, sawReplay, sawTurnedAway, sawStopped, sawAborted, sawUnknown}},
		{"a drain, and power", 1 << 22, Plan{first: []wish{issue(0, "ann", 5)}, drains: 1, aborts: 1, slow: true, rash: true, powers: 1, fails: 1,
			scripts: [][]wish{{pay}}},
			[]sight{sawAnswer, sawReplay, sawTurnedAway, sawStopped, sawUnknown, sawAcknowledged}},
		{"a batch of all or nothing", 1 << 22, Plan{first: []wish{issue(0, "ann", 5)}, powers: 1, kills: 1, torn: true,
			scripts: [][]wish{{batch(1, true, transfer(0, "ann", "bob", 3, 1), transfer(0, "bob", "shop", 2, 1)), batch(2, true, issue(0, "bob", 1).named(0), burn(0, "ann", 5, 2))},
				{batch(3, true, burn(0, "ann", 1, 1), transfer(0, "ann", "bob", 1, 3))}}},
			[]sight{sawBatch, sawReplay, sawTakenBack, sawRefusal, sawTail, sawLost, sawTorn, sawAcknowledged}},
		{"a batch of each, and refs", 1 << 22, Plan{first: []wish{issue(0, "ann", 5)}, powers: 1,
			scripts: [][]wish{{batch(1, false, transfer(0, "ann", "bob", 3, 1).named(0), burn(0, "ann", 9, 2))}, {issue(2, "bob", 1).named(0), burn(3, "ann", 2, 2)}}},
			[]sight{sawAnswer, sawBatch, sawReplay, sawUsed, sawRefusal, sawTail, sawLost, sawAcknowledged}},
		{"refs that leave the window", 1 << 22, Plan{first: []wish{issue(0, "ann", 9)}, keys: 3, ttl: 8 * second, trail: 2 * second,
			jumps: 1, jump: 9 * second, powers: 1, tables: 1, tries: 1, heartbeat: 20 * second,
			scripts: [][]wish{{issue(1, "bob", 2).named(0), issue(2, "bob", 2).named(0)}}},
			[]sight{sawAnswer, sawUsed, sawForgot, sawSentBack, sawAcknowledged}},
		{"an account that is frozen", 1 << 22, Plan{first: []wish{issue(0, "ann", 9)}, powers: 1,
			scripts: [][]wish{{freeze(1, "ann"), unfreeze(2, "ann")}, {pay3, burn(4, "bob", 1, 1)}}},
			[]sight{sawAnswer, sawReplay, sawFrozen, sawRefusal, sawTail, sawLost, sawAcknowledged}},
		{"what is held of who is frozen", 1 << 22, Plan{first: []wish{issue(0, "ann", 9), hold(1, "ann", 6, 1, 3*second/2)}, jumps: 1, jump: 2 * second, powers: 1,
			scripts: [][]wish{{freeze(2, "ann")}, {capture(3, 1, "ann", "bob", 4), release(4, 1, "ann")}}},
			[]sight{sawAnswer, sawReplay, sawFrozen, sawRefusal, sawLapsed, sawCaptured, sawReleased, sawAcknowledged}},
		{"two tenants, one name", 1 << 22, Plan{first: []wish{issue(0, "ann", 5)}, tenants: 2, powers: 1,
			scripts: [][]wish{{transfer(1, "ann", "bob", 3, 1).named(0)}, {issue(2, "ann", 5).others(1).named(0), transfer(3, "ann", "bob", 4, 1).others(0)}}},
			[]sight{sawAnswer, sawReplay, sawOther, sawTail, sawLost, sawAcknowledged}},
	}
}

// deep are larger scopes, minutes each.
func deep() []named {
	pay := transfer(1, "ann", "bob", 3, 1)
	return []named{
		{"two of each, and power", 1 << 26, Plan{first: []wish{issue(0, "ann", 5)}, powers: 2, kills: 1, torn: true, leaves: 1, waiters: 1,
			scripts: [][]wish{{pay, burn(2, "ann", 5, 2)}, {pay, transfer(1, "ann", "bob", 4, 1)}}},
			[]sight{sawAnswer, sawReplay, sawConflict, sawRefusal, sawTail, sawLost, sawAgain, sawTorn, sawAcknowledged, sawLeft}},
		{"a hold, two ends, and power", 1 << 26, Plan{first: []wish{issue(0, "ann", 9)}, jumps: 1, passes: 1, jump: 2 * second, powers: 1,
			scripts: [][]wish{{hold(1, "ann", 6, 1, 3*second/2), capture(2, 1, "ann", "bob", 4)}, {release(3, 1, "ann"), transfer(4, "ann", "bob", 5, 2)}}},
			[]sight{sawAnswer, sawReplay, sawRefusal, sawLapsed, sawCaptured, sawReleased, sawAcknowledged}},
		{"keys that leave, and an index that is lost", 1 << 26, Plan{first: []wish{issue(0, "ann", 9)}, keys: 3, ttl: 8 * second, trail: 2 * second,
			jumps: 1, jump: 3 * second, powers: 1, tables: 1, lost: true, tries: 1, heartbeat: 9 * second,
			scripts: [][]wish{{pay, pay}, {issue(2, "bob", 1)}}},
			[]sight{sawAnswer, sawReplay, sawForgot, sawIndexed, sawSentBack, sawAcknowledged}},
		{"a drain that is left", 1 << 26, Plan{first: []wish{issue(0, "ann", 5)}, drains: 1, aborts: 1, slow: true, downs: 1, leaves: 1, fails: 1,
			scripts: [][]wish{{pay}, {pay}}},
			[]sight{sawAnswer, sawReplay, sawTurnedAway, sawStopped, sawAborted, sawUnknown}},
	}
}
