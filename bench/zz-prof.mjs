import { Session } from 'node:inspector';
import { writeFileSync } from 'node:fs';
if (process.env.PROF_OUT && process.argv[1]?.endsWith('server.mjs'))
  setTimeout(() => {
    const s = new Session();
    s.connect();
    s.post('Profiler.enable');
    s.post('Profiler.setSamplingInterval', { interval: 200 });
    s.post('Profiler.start');
    setTimeout(
      () =>
        s.post('Profiler.stop', (e, { profile }) => {
          writeFileSync(process.env.PROF_OUT, JSON.stringify(profile));
        }),
      3000,
    );
  }, 3500);
