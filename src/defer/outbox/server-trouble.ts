/** Error names and codes of a server or connection in trouble: sockets, ioredis, node-redis, BullMQ. */
const NAMES = new Set(['MaxRetriesPerRequestError', 'AbortError', 'ConnectionClosedError', 'ClusterAllFailedError']);
const CODES = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|NR_CLOSED|CONNECTION_)/;
/** Redis' replies about its own state or our rights. Up to Redis 6.2 a script's error is inside another, behind `: -`. */
const REPLIES =
  /(?:^|: -)(LOADING|READONLY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|OOM|MISCONF|NOREPLICAS|BUSY|NOAUTH|WRONGPASS|NOPERM|NOSCRIPT|MOVED|ASK|CROSSSLOT|EXECABORT|UNKILLABLE)\b/;
const TEXTS =
  /connection (is|was)? ?closed|stream isn't writeable|has not answered|timed out|user executing the script can't|max number of clients reached|cluster redirections|cluster isn't ready|startup nodes/i;

/** Whether an error speaks of the server rather than of the job: the job is sent again then. */
export function isServerTrouble(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return (
    NAMES.has(error.name) ||
    (typeof code === 'string' && CODES.test(code)) ||
    REPLIES.test(error.message) ||
    TEXTS.test(error.message)
  );
}
