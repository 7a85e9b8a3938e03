// The small API with one sink, which the first argument names.
import { PerfModule } from 'nestjs-perf';
import { serveApi } from '../overhead/application.mjs';
import { sinkNamed } from './sinks.mjs';

await serveApi({ imports: [PerfModule.forRoot({ sinks: [sinkNamed(process.argv[2])] })] });
