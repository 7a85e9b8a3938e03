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
