package attic // want `attic is in no layer: add it to archcheck.Layers`
