package offline

import (
	"errors"
	"os"

	"macronode/adapters/objectstore"
	"macronode/core/placement"
	"macronode/core/storage"
)

// copyCheck checks the copies of objects in all providers.
type copyCheck struct {
	store *objectstore.Store
	look  func(storage.Stored, int) error
	found []CopyReport
}

func newCopyCheck(store *objectstore.Store, look func(storage.Stored, int) error) *copyCheck {
	c := &copyCheck{store: store, look: look}
	for _, h := range store.Health() {
		c.found = append(c.found, CopyReport{Provider: h.Name})
	}
	return c
}

// check counts the copies of an object. It returns why the object cannot be read: no copy is good, or this process may not read
// one, so that nothing is known of it.
func (c *copyCheck) check(o storage.Stored) error {
	var good, bad placement.Set
	why := error(objectstore.ErrGone)
	for i := range c.found {
		switch err := c.look(o, i); {
		case err == nil:
			good = good.With(i)
			c.found[i].Intact++
		case errors.Is(err, os.ErrPermission):
			return err
		case !errors.Is(err, objectstore.ErrGone):
			bad, why = bad.With(i), err
			c.found[i].Damaged++
		}
	}
	table := c.store.Table()
	lacking := c.store.Copies().Count - table.Spread(good|bad)
	missing := table.Choose(uint64(o.File), max(0, lacking), table.All()&^(good|bad), good|bad)
	for i := range missing.Len() {
		c.found[missing.At(i)].Missing++
	}
	if good != 0 {
		return nil
	}
	return why
}
