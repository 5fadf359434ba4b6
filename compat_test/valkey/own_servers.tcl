# What valkey_suite_test.go puts in front of those files of Valkey's test
# suite that start servers of their own: src/valkey-server is the server under test.

if {[info commands ::spawn_server_of_the_suite] eq ""} {
    rename spawn_server spawn_server_of_the_suite

    # The configuration of the suite asks for keyspace notifications, which are not ours. One
    # event loop, for the suite takes it that a command is through before another
    # connection's is begun. One test makes a large collection.
    proc spawn_server {config_file stdout stderr args} {
        set file [open $config_file]
        set lines [split [read -nonewline $file] "\n"]
        close $file
        set file [open $config_file w]
        foreach line $lines {
            if {![string match "notify-keyspace-events *" $line] && ![string match "io-threads *" $line]
                && ![string match "collection-max-elements *" $line]} {
                puts $file $line
            }
        }
        puts $file "io-threads 1"
        puts $file "collection-max-elements 10000000"
        close $file
        uplevel 1 [list spawn_server_of_the_suite $config_file $stdout $stderr {*}$args]
    }

    # The suite waits for lines of Redis' log. Here it waits for an answer instead.
    proc wait_server_started {config_file stdout pid} {
        set file [open $config_file]
        regexp -line {^port (\d+)$} [read $file] -> port
        close $file
        for {set tries 0} {$tries < 1200} {incr tries} {
            if {[ping_server $::host $port]} {
                set file [open $stdout a]
                puts $file "Ready to accept connections"
                close $file
                return 0
            }
            if {[catch {exec kill -0 $pid}]} {
                start_server_error $config_file "the server has ended"
                return 0
            }
            after 20
        }
        start_server_error $config_file "the server does not answer"
        return 0
    }
}
