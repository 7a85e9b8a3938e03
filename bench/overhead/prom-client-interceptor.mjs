// prom-client as its Nest tutorials wire it: a histogram with method, route and status, observed in an interceptor.
import { APP_INTERCEPTOR } from '@nestjs/core';
import { Histogram, Registry } from 'prom-client';
import { tap } from 'rxjs';
import { serveApi } from './application.mjs';

class MetricsInterceptor {
  duration = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Duration of HTTP requests',
    labelNames: ['method', 'route', 'status'],
    registers: [new Registry()],
  });

  intercept(context, next) {
    const end = this.duration.startTimer();
    const http = context.switchToHttp();
    const request = http.getRequest();
    const observe = () =>
      end({ method: request.method, route: request.routeOptions.url, status: http.getResponse().statusCode });
    return next.handle().pipe(tap({ next: observe, error: observe }));
  }
}

await serveApi({ providers: [{ provide: APP_INTERCEPTOR, useClass: MetricsInterceptor }] });
