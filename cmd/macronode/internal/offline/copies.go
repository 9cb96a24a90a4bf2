package offline

import (
	"errors"
	"os"

	"macronode/adapters/objectstore"
	"macronode/core/storage"
)

// copyCheck checks the copies and the shards of objects in all providers.
type copyCheck struct {
	store *objectstore.Store
	look  func(storage.Stored, objectstore.Part) error
	found []CopyReport
}

func newCopyCheck(store *objectstore.Store, look func(storage.Stored, objectstore.Part) error) *copyCheck {
	c := &copyCheck{store: store, look: look}
	for _, h := range store.Health() {
		c.found = append(c.found, CopyReport{Provider: h.Name})
	}
	return c
}

// check counts the parts of an object. It returns why the object cannot be read: too few parts are good, or this process may not read
// one, so that nothing is known of it.
func (c *copyCheck) check(o storage.Stored) error {
	var good, bad []objectstore.Part
	why, forbidden := error(objectstore.ErrGone), error(nil)
	scheme := c.store.Survey(o, c.store.Table().All(), func(p objectstore.Part) error { return c.look(o, p) }, func(p objectstore.Part, err error) {
		switch {
		case err == nil:
			good = append(good, p)
			c.found[p.Provider].Intact++
		case errors.Is(err, os.ErrPermission):
			forbidden = err
		default:
			bad, why = append(bad, p), err
			c.found[p.Provider].Damaged++
		}
	})
	if forbidden != nil {
		return forbidden
	}
	is, all := c.store.NewParts(scheme, good...), c.store.NewParts(scheme, append(bad, good...)...)
	for _, p := range c.store.Missing(o, &all, c.store.Table().All()) {
		c.found[p.Provider].Missing++
	}
	if is.AreEnough() {
		return nil
	}
	return why
}
