// nestjs-pino with its defaults: one log line a request. stdout is /dev/null here, which is cheaper than any real log.
import { LoggerModule } from 'nestjs-pino';
import { serveApi } from '../overhead/application.mjs';

await serveApi({ imports: [LoggerModule.forRoot()] });
