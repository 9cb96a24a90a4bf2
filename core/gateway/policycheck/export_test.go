package policycheck

// ChangeWithin is Change with another limit of steps.
var ChangeWithin = change
