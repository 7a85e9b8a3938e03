import type { Body, CachedBody } from './cache/cached-body.js';
import type { ContentCoding } from './rules/content-coding.js';
import { isExpressTag, matchingTag, representationTag, weakened } from './rules/entity-tag.js';
import type { ResponseView } from './response-view.js';
import { hasMember, isWritable } from './rules/field-value.js';

/** The entity tags of one response, and whether the client has its content already (RFC 9110 section 13). */
export class ConditionalResponse {
  /** Tag of the identity representation; null where nobody made one. */
  private readonly base: string | null;
  /** It stands for the content alone, so that each representation may have its own. */
  private readonly ofContent: boolean;
  private readonly ifNoneMatch: string | undefined;

  /** `entry` gives responses without a tag of the application's one of their content. */
  constructor(
    private readonly view: ResponseView,
    body: Body,
    entry: CachedBody | null,
  ) {
    const given = view.header('etag');
    if (typeof given === 'string') {
      this.base = given;
      this.ofContent = isExpressTag(given, body);
    } else {
      this.base = entry !== null && view.tags ? entry.tag : null;
      this.ofContent = true;
    }
    const wanted = this.base === null ? undefined : view.requestHeader('if-none-match');
    this.ifNoneMatch = wanted !== undefined && mayBeFresh(view) ? wanted : undefined;
  }

  /** Puts the representation's tag on the response. True: the client has it, and the response is now a 304 without a body. */
  settle(coding: ContentCoding | null, level: number): boolean {
    const tag = this.tagOf(coding, level);
    if (tag === null) return false;
    this.view.set('etag', tag);
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
    const { view } = this;
    view.set('etag', tag);
    view.setStatus(304);
    for (const name of ['content-type', 'content-length', 'content-encoding', 'transfer-encoding']) view.remove(name);
    return true;
  }
}

/**
 * A conditional GET that the client has not asked to be answered anew (`Cache-Control: no-cache`, a forced reload). A 304 whose
 * head Node refuses could not be answered otherwise any more: Node would not send another answer's body.
 */
function mayBeFresh(view: ResponseView): boolean {
  if (view.status !== 200 || view.method !== 'GET') return false;
  return !hasMember(view.requestHeader('cache-control'), 'no-cache') && isWritable(view.headers());
}
