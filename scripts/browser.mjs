// A real browser for the suites of the dashboard's page: Chromium on PATH, else installed with apt as root, else a clear stop.
import { ensureProgram } from './install.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** The path of a Chromium; throws with the command to run where there is none, and none can be installed. */
export const ensureBrowser = () => ensureProgram(NAMES, 'chromium', 'These tests need Chromium. Install it');
