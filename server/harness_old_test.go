package server_test

