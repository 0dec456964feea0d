import { readFile } from 'node:fs/promises'
import { parse, stringify } from 'yaml'
import { CliError } from '../process/terminal.ts'
import { importEnvoyRatelimit } from '../serve/rate-limit/import-envoy.ts'
import type { Command } from './command.ts'

const kinds = ['envoy-ratelimit']
const largestFile = 4 * 1024 * 1024

/** `diana import`: rules of other programs as a rule file. */
export const importCommand: Command = {
  usage: 'envoy-ratelimit FILE…',
  details: [
    '  FILE              a YAML file of the service: domain and descriptors; several files become one rule file',
    '',
    'The rule file is printed, and what could not be converted is printed as warnings.',
  ],
  options: {},
  async run({ words }, terminal) {
    const [kind, ...files] = words
    if (kind === undefined || !kinds.includes(kind)) {
      throw new CliError(2, `say what to import: ${kinds.join(', ')}`)
    }
    if (files.length === 0) throw new CliError(2, 'say which file to import')
    const ids = new Set<string>()
    const rules: object[] = []
    for (const file of files) {
      const { rules: more, warnings } = importEnvoyRatelimit(await read(file), ids)
      rules.push(...more)
      for (const warning of warnings) terminal.printError(`warning: ${file}: ${warning}`)
    }
    if (rules.length === 0) throw new CliError(1, 'these files have no limits')
    terminal.print('# Limits are sliding windows: in no period do more calls pass than the limit says.')
    terminal.print('# To count in Redis for several servers, add store: { redis: redis://127.0.0.1:6379 }.')
    terminal.print(stringify({ rules, serve: {} }).trimEnd())
    return 0
  },
}

async function read(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError(1, `${file}: cannot be read (${error.code}); check the path`)
  })
  if (text.length > largestFile) throw new CliError(1, `${file}: is larger than ${largestFile} bytes`)
  try {
    return parse(text)
  } catch (error) {
    throw new CliError(1, `${file}: is not YAML: ${(error as Error).message.split('\n')[0]}`)
  }
}
