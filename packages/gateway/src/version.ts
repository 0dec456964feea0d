import { readFileSync } from 'node:fs'

/** Which Diana this is. */
export const version: string = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
).version
