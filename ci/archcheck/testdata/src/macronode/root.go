package macronode // want `no package at the root`
