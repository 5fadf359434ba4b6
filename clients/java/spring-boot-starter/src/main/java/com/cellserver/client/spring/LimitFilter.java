package com.cellserver.client.spring;

import com.cellserver.client.HttpAnswer;
import com.cellserver.client.RequestInfo;
import com.cellserver.client.Result;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.springframework.http.server.PathContainer;
import org.springframework.web.cors.CorsUtils;
import org.springframework.web.filter.OncePerRequestFilter;
import org.springframework.web.util.UriUtils;

/** Limits requests in servlet applications. CORS preflight requests are not limited. */
final class LimitFilter extends OncePerRequestFilter {
    private final List<Rule> rules;

    LimitFilter(List<Rule> rules) {
        this.rules = rules;
    }

    private record Info(HttpServletRequest request) implements RequestInfo {
        @Override
        public String peer() {
            return request.getRemoteAddr();
        }

        @Override
        public List<String> header(String name) {
            return Collections.list(request.getHeaders(name));
        }

        @Override
        public String user() {
            Principal principal = request.getUserPrincipal();
            return principal == null ? null : principal.getName();
        }
    }

    @Override
    protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        if (CorsUtils.isPreFlightRequest(request)) {
            chain.doFilter(request, response);
            return;
        }
        var path = path(request);
        var info = new Info(request);
        var answers = new ArrayList<HttpAnswer>();
        for (Rule rule : rules) {
            String key = rule.matches(path) ? rule.key().of(info) : null;
            if (key == null) {
                continue;
            }
            Result result = rule.limiter().check(key, rule.cost());
            var answer = HttpAnswer.of(result, rule.limiter().headers());
            if (answer.status() != 0) {
                deny(response, answer);
                return;
            }
            answers.add(answer);
        }
        var fields = Rule.merged(answers);
        if (fields.isEmpty()) {
            chain.doFilter(request, response);
            return;
        }
        var adding = new Adding(response, fields);
        chain.doFilter(request, adding);
        if (!request.isAsyncStarted()) {
            adding.add();
        }
    }

    /** The path that the container routes by: without dot segments, doubled slashes and parameters. */
    private static PathContainer path(HttpServletRequest request) {
        String info = request.getPathInfo();
        return PathContainer.parsePath(
                UriUtils.encodePath(info == null ? request.getServletPath() : request.getServletPath() + info, StandardCharsets.UTF_8));
    }

    private static void deny(HttpServletResponse response, HttpAnswer answer) throws IOException {
        response.setStatus(answer.status());
        answer.fields().forEach(response::setHeader);
        response.setContentType(HttpAnswer.PROBLEM_TYPE);
        var body = answer.body().getBytes(StandardCharsets.UTF_8);
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }

    /** Adds header fields to an answer before its body, unless it has them or is a 3xx or 503. */
    private static final class Adding extends HttpServletResponseWrapper {
        private final Map<String, String> fields;

        Adding(HttpServletResponse response, Map<String, String> fields) {
            super(response);
            this.fields = fields;
        }

        void add() {
            if (!isCommitted() && HttpAnswer.carries(getStatus())) {
                fields.forEach((name, value) -> {
                    if (!containsHeader(name)) {
                        setHeader(name, value);
                    }
                });
            }
        }

        @Override
        public ServletOutputStream getOutputStream() throws IOException {
            add();
            return super.getOutputStream();
        }

        @Override
        public PrintWriter getWriter() throws IOException {
            add();
            return super.getWriter();
        }

        @Override
        public void flushBuffer() throws IOException {
            add();
            super.flushBuffer();
        }

        @Override
        public void sendError(int status, String message) throws IOException {
            setStatus(status);
            add();
            super.sendError(status, message);
        }

        @Override
        public void sendError(int status) throws IOException {
            setStatus(status);
            add();
            super.sendError(status);
        }
    }
}
