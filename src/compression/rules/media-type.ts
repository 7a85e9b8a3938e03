/**
 * Types that compress: text, and what is text by another name. `application/octet-stream` is left out: nobody knows what
 * it holds. So is `text/event-stream`: a compressor holds events back until its buffer is full.
 */
const COMPRESSIBLE =
  /^(?:text\/(?!event-stream$).+|.+[/+](?:json|xml|text|yaml)|application\/(?:javascript|ecmascript|x-javascript|typescript|json5|jsonl|ndjson|x-ndjson|x-json-stream|geojson|graphql|manifest|sql|rtf|toml|wasm|x-www-form-urlencoded|x-sh|x-yaml|vnd\.ms-fontobject)|font\/(?:otf|ttf|collection)|image\/(?:bmp|x-icon|vnd\.microsoft\.icon))$/;

/** Whether bodies of this `Content-Type` get smaller. */
export function isCompressible(contentType: string): boolean {
  const end = contentType.indexOf(';');
  return COMPRESSIBLE.test((end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase());
}

/** The same, remembered: an application has a handful of types. */
export class CompressibleTypes {
  private readonly known = new Map<string, boolean>();
  private last = '';
  private lastIs = false;

  has(contentType: string): boolean {
    // Most often the one of the response before: the very same string, which costs no comparison.
    if (contentType !== this.last) {
      this.lastIs = this.lookUp(contentType);
      this.last = contentType;
    }
    return this.lastIs;
  }

  private lookUp(contentType: string): boolean {
    const known = this.known.get(contentType);
    if (known !== undefined) return known;
    const compressible = isCompressible(contentType);
    // Bounded: an application may put anything, a boundary for example, into the header.
    if (this.known.size < 256) this.known.set(contentType, compressible);
    return compressible;
  }
}
