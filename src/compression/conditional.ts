import type { Body, CachedBody } from './cache/cached-body.js';
import type { ContentCoding } from './rules/content-coding.js';
import { isExpressTag, matchingTag, representationTag, weakened } from './rules/entity-tag.js';
import type { Exchange } from './exchange.js';
import { hasMember } from './rules/field-value.js';

/** The entity tags of one response, and whether the client has its content already (RFC 9110 section 13). */
export class ConditionalResponse {
  /** Tag of the identity representation; null where nobody made one. */
  private readonly base: string | null;
  /** It stands for the content alone, so that each representation may have its own. */
  private readonly ofContent: boolean;
  private readonly ifNoneMatch: string | undefined;

  /** `entry` gives responses without a tag of the application's one of their content. */
  constructor(
    private readonly exchange: Exchange,
    body: Body,
    entry: CachedBody | null,
  ) {
    const given = exchange.header('etag');
    if (typeof given === 'string') {
      this.base = given;
      this.ofContent = entry === null ? isExpressTag(given, body) : entry.hasExpressTag(given);
    } else {
      this.base = entry !== null && exchange.tags ? entry.tag : null;
      this.ofContent = true;
    }
    const wanted = this.base === null ? undefined : exchange.requestHeader('if-none-match');
    this.ifNoneMatch = wanted !== undefined && mayBeFresh(exchange) ? wanted : undefined;
  }

  /** Puts the representation's tag on the response. True: the client has it, and the response is now a 304 without a body. */
  settle(coding: ContentCoding | null, level: number): boolean {
    const tag = this.tagOf(coding, level);
    if (tag === null) return false;
    this.exchange.set('etag', tag);
    return this.ifNoneMatch !== undefined && matchingTag(this.ifNoneMatch, tag) !== null && this.notModified(tag);
  }

  /** The same before the body has been encoded, so that it need not be: true where the client's tag tells enough. */
  settleEarly(coding: ContentCoding): boolean {
    if (this.ifNoneMatch === undefined || this.ifNoneMatch.trim() === '*') return false;
    const match = matchingTag(this.ifNoneMatch, this.tagOf(coding, 0)!);
    if (match === null) return false;
    return this.notModified(this.ofContent ? match : this.tagOf(coding, 0)!);
  }

  private tagOf(coding: ContentCoding | null, level: number): string | null {
    if (this.base === null || coding === null) return this.base;
    return this.ofContent ? representationTag(this.base, coding, level) : weakened(this.base);
  }

  private notModified(tag: string): true {
    const { exchange } = this;
    exchange.set('etag', tag);
    exchange.status = 304;
    for (const name of ['content-type', 'content-length', 'content-encoding', 'transfer-encoding'])
      exchange.remove(name);
    return true;
  }
}

/** A conditional GET or HEAD that the client has not asked to be answered anew (`Cache-Control: no-cache`, a forced reload). */
function mayBeFresh(exchange: Exchange): boolean {
  if (exchange.status !== 200 || (exchange.method !== 'GET' && exchange.method !== 'HEAD')) return false;
  return !hasMember(exchange.requestHeader('cache-control'), 'no-cache');
}
