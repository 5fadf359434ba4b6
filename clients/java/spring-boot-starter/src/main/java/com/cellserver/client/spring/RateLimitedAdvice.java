package com.cellserver.client.spring;

import com.cellserver.client.HttpAnswer;
import java.nio.charset.StandardCharsets;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ControllerAdvice;
import org.springframework.web.bind.annotation.ExceptionHandler;

/** Answers requests whose controller throws {@link RateLimitedException}. A handler of the application goes before it. */
@ControllerAdvice
final class RateLimitedAdvice {
    @ExceptionHandler
    ResponseEntity<byte[]> denied(RateLimitedException denial) {
        var answer = denial.answer();
        var response = ResponseEntity.status(answer.status()).contentType(MediaType.parseMediaType(HttpAnswer.PROBLEM_TYPE));
        answer.fields().forEach((name, value) -> response.header(name, value));
        return response.body(answer.body().getBytes(StandardCharsets.UTF_8));
    }
}
