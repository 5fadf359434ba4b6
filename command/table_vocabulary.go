package command

import "strings"

// A table is the [acl.Vocabulary] of a server. ACL rules use the original names of commands, even
// if the commands have been renamed.

// speak fills t.vocabulary. It is called after all entries were added.
func (t *Table) speak() {
	t.vocabulary = vocabulary{make(map[string]int, len(t.Entries)), make(map[string][]int)}
	for _, c := range t.Entries {
		t.vocabulary.commands[c.Name] = c.ID
		for _, name := range c.AllCategories().Names() {
			t.vocabulary.categories[name] = append(t.vocabulary.categories[name], c.ID)
		}
	}
}

// Commands implements [acl.Vocabulary]: it returns the number of entries, subcommands included.
func (t *Table) Commands() int { return len(t.Entries) }

// Command implements [acl.Vocabulary]: it returns the ID of the entry called name, in lower case.
func (t *Table) Command(name string) (id int, ok bool) {
	id, ok = t.vocabulary.commands[name]
	return id, ok
}

// Subcommands implements [acl.Vocabulary]: it returns the IDs of the subcommands of the entry id.
func (t *Table) Subcommands(id int) (ids []int) {
	for _, sub := range t.Entries[id].Sub {
		ids = append(ids, sub.ID)
	}
	return ids
}

// Category implements [acl.Vocabulary]: it returns the IDs of the entries in the category called
// name, in any case. The caller must not change the result.
func (t *Table) Category(name string) (ids []int, ok bool) {
	ids, ok = t.vocabulary.categories[strings.ToLower(name)]
	return ids, ok
}
