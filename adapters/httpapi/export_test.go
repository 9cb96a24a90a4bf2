package httpapi

// Missing is exported for cases that the fakes cannot produce.
var Missing = missing
