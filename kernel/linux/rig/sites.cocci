// Where the kernel takes the locks of reverse maps by itself, changes their trees, or looks whether they are empty:
// a line for each, as rig/sites prints them. Logs are applied in the helpers that take the locks, so that every
// place that goes round a helper has to be known.
virtual report

@locks@
expression E;
position p;
identifier f =~ "^(down|up|downgrade)_(read|write).*|^rwsem_is_.*";
@@
(
 f@p(&E->i_mmap_rwsem, ...)
|
 f@p(&E->root->rwsem, ...)
|
 f@p(&E->rwsem, ...)
)

@script:python@
p << locks.p;
f << locks.f;
@@
print("lock %s %s %s" % (p[0].file, p[0].current_element, f))

@trees@
position p;
identifier t =~ "^(__)?(anon_)?vma_interval_tree_(insert|insert_after|remove|iter_first)$|^anon_vma_interval_tree_(pre|post)_update_vma$";
@@
 t@p(...)

@script:python@
p << trees.p;
t << trees.t;
@@
print("tree %s %s %s" % (p[0].file, p[0].current_element, t))

@empty@
expression E;
position p;
@@
(
 RB_EMPTY_ROOT@p(&E->i_mmap.rb_root)
|
 RB_EMPTY_ROOT@p(&E->rb_root.rb_root)
|
 mapping_mapped@p(E)
)

@script:python@
p << empty.p;
@@
print("empty %s %s" % (p[0].file, p[0].current_element))
