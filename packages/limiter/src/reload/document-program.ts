import { existsSync } from 'node:fs'
import { once } from '../common/once.ts'

/** Returns the program of the thread; undefined if it does not exist, as beside the sources or in a bundle. */
export const documentProgram: () => URL | undefined = once(() => findProgram('./document-thread-main.js'))

// in a file of its own: compilers that make CommonJS of modules, such as ts-jest, leave `import.meta` in it, which ends the program
function findProgram(name: string): URL | undefined {
  // bundlers replace `new URL(…, import.meta.url)`; those that write CommonJS may have no import.meta.url
  const here: string | undefined = import.meta.url
  const url = URL.canParse(name, here) ? new URL(name, here) : undefined
  return url?.protocol === 'file:' && existsSync(url) ? url : undefined
}
