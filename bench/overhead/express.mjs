// Nest on Express: `<bare|latency|default> [user]`. With `user`, a guard sets `request.user`, as a login does.
import { APP_GUARD } from '@nestjs/core';
import { PerfModule } from 'nestjs-perf';
import { serveApi } from './application.mjs';

const IMPORTS = {
  bare: [],
  latency: [PerfModule.forRoot({ eventLoop: false, resources: false, compression: false, defer: false })],
  default: [PerfModule.forRoot()],
};
class UserGuard {
  canActivate(context) {
    context.switchToHttp().getRequest().user = { id: 1 };
    return true;
  }
}
const [which, user] = process.argv.slice(2);

await serveApi({
  express: true,
  imports: IMPORTS[which],
  providers: user === undefined ? [] : [{ provide: APP_GUARD, useClass: UserGuard }],
});
