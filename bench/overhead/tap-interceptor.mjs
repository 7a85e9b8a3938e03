// The interceptor that users write by hand: a global one that times the handler with RxJS and keeps a histogram for each route.
import { APP_INTERCEPTOR } from '@nestjs/core';
import { finalize, tap } from 'rxjs';
import { createHistogram } from 'node:perf_hooks';
import { serveApi } from './application.mjs';

class LatencyInterceptor {
  histograms = new Map();
  errors = 0;

  intercept(context, next) {
    const startedMs = performance.now();
    const request = context.switchToHttp().getRequest();
    const key = `${request.method} ${request.routeOptions.url}`;
    return next.handle().pipe(
      tap({ error: () => (this.errors += 1) }),
      finalize(() => this.findHistogram(key).record(Math.max(1, Math.round((performance.now() - startedMs) * 1000)))),
    );
  }

  findHistogram(key) {
    let histogram = this.histograms.get(key);
    if (histogram === undefined) this.histograms.set(key, (histogram = createHistogram()));
    return histogram;
  }
}

await serveApi({ providers: [{ provide: APP_INTERCEPTOR, useClass: LatencyInterceptor }] });
