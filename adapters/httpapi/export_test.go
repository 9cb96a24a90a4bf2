package httpapi

// Missing is for the tests of what no fake can be brought to.
var Missing = missing
