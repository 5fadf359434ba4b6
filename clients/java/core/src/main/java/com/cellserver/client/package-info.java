/** Limits of cellserver for an application: one call to the server, and an answer within the deadline whatever happens to it. */
package com.cellserver.client;
