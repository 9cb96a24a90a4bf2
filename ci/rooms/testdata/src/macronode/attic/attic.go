package attic // want `attic stands in no room: add it to rooms.House`
