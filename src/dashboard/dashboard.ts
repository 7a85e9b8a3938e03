import type { Server } from 'node:http';
import { guarded } from '../core/guarded.js';
import type { PerfRequest } from '../core/perf-request.js';
import type { PerfSink } from '../core/sink.js';
import type { Profiler } from '../ports/loop-profile.js';
import type { PerfApplication } from '../request/application.js';
import type { Feature, FeatureBoot } from '../request/feature.js';
import type { RawAnswer } from '../request/platform.js';
import { Access, findAddress } from './access.js';
import { Answers } from './answers.js';
import { tokenOfEnvironment, type ResolvedDashboard } from './dashboard.options.js';
import { DashboardView } from './dashboard-view.js';
import { pageAssets } from './page-assets.js';
import type { DashboardSources } from './pod-view.js';
import { RecentRecords } from './recent-records.js';

/** A live page. Without a viewer it keeps records of blocks and resources, and does nothing else. */
export class Dashboard implements Feature {
  private readonly access: Access;
  private readonly records = new RecentRecords();
  readonly sink: PerfSink = {
    name: 'dashboard',
    requests: 'none',
    publish: (records) => records.forEach(this.records.add),
  };
  private isLogged = false;
  private server: Server | null = null;

  constructor(
    private readonly options: ResolvedDashboard,
    private readonly host: PerfApplication,
    private readonly sources: DashboardSources,
    private readonly profiler: Profiler | null,
  ) {
    const token = options.token ?? tokenOfEnvironment(process.env);
    this.access = new Access(options.authorize, token, options.tokenTtlMs, () => findAddress(this.server));
  }

  install({ platform, adapter }: FeatureBoot): void {
    const { host, options } = this;
    if (platform === null || adapter === null) {
      host.logger.warn('`dashboard` does nothing: this application has no HTTP server.');
      return;
    }
    const { script, style } = pageAssets;
    const view = new DashboardView(host, this.sources, this.records, script.name, options.redactUsers);
    const about = { script: script.name, style: style.name, path: options.path };
    const answers = new Answers(this.access, view, this.profiler, about, this.logAddress);
    const get = (path: string, answer: (request: PerfRequest) => ReturnType<RawAnswer>): void =>
      platform.rawRoute(`${options.path}${path}`, this.safe(answer));
    get('', answers.page);
    get('/', answers.page);
    get('/data', answers.data);
    get('/profile', answers.profile);
    get(`/${script.name}`, answers.asset('text/javascript; charset=utf-8', script.brotli));
    get(`/${style.name}`, answers.asset('text/css; charset=utf-8', style.brotli));
    this.server = adapter.getHttpServer() as Server;
    this.server.once('listening', this.logAddress);
  }

  /** Logs once where the page is: at the latest when a request without access comes, on a server that is not known here. */
  private readonly logAddress = (): void => {
    if (this.isLogged) return;
    this.isLogged = true;
    const { token, isPrinted } = this.access;
    const query = isPrinted ? `?token=${token}` : '';
    const advice = token === null || isPrinted ? '' : ' (with the token of `dashboard.token` or PERF_TOKEN)';
    this.host.logger.log(`Perf dashboard: ${findAddress(this.server)}${this.options.path}${query}${advice}`);
  };

  /** An answer that fails is 500, and its reason goes to the log. */
  private safe(answer: (request: PerfRequest) => ReturnType<RawAnswer>): RawAnswer {
    return guarded(null, answer, (reason) => {
      const cause = `the dashboard failed: ${reason}`;
      this.host.report.report(cause, `${cause}. Its viewer was answered with 500.`);
    });
  }
}
