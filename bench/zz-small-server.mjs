import { serveApi } from './overhead/application.mjs';
const [from, which] = process.argv.slice(2);
if (from === 'bare') await serveApi();
else {
  const { PerfModule } = await import(from);
  await serveApi({
    imports: [
      PerfModule.forRoot({ eventLoop: false, resources: false, defer: false, compression: which === 'compression' }),
    ],
  });
}
