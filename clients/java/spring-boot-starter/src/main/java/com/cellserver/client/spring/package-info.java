/** Limits of cellserver for Spring Boot: a servlet filter, a web filter, an annotation and metrics. */
package com.cellserver.client.spring;
