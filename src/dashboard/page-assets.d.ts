/** The page, ready to be sent: `scripts/page.mjs` writes the module from the sources in `page/`. */
export declare const pageAssets: Readonly<Record<'script' | 'style', PageAsset>>;

interface PageAsset {
  /** `'app-1a2b3c4d.js'`: of its content, so that it may be kept for ever. */
  readonly name: string;
  /** Compressed with brotli, as base64. */
  readonly brotli: string;
}
