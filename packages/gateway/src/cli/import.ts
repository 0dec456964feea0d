import { readFile } from 'node:fs/promises'
import { parse, stringify } from 'yaml'
import { CliError } from '../process/terminal.ts'
import { importEnvoyRatelimit } from '../serve/rate-limit/import-envoy.ts'
import type { Command } from './command.ts'
import { importExpress } from './importing/import-express.ts'
import { importNginx } from './importing/import-nginx.ts'

/** Rules for a rule file, and what could not be converted. */
interface Converted {
  readonly rules: readonly object[]
  readonly warnings: readonly string[]
}

interface Kind {
  readonly notes: readonly string[]
  /** The sections of the rule file beside its rules. */
  readonly sections: object
  read(text: string, ids: Set<string>): Converted
}

const kinds: Readonly<Record<string, Kind>> = {
  'envoy-ratelimit': {
    notes: ['# Limits are sliding windows: in no period do more calls pass than the limit says.'],
    sections: { serve: {} },
    read: (text, ids) => importEnvoyRatelimit(parseYaml(text), ids),
  },
  nginx: {
    notes: ['# leaky-bucket counts as limit_req does.'],
    sections: {},
    read: importNginx,
  },
  'express-rate-limit': {
    notes: [
      '# fixed-window admits twice the limit around the end of a window; leave algorithm and align out for a sliding window.',
    ],
    sections: {},
    read: importExpress,
  },
}
const largestFile = 4 * 1024 * 1024

/** `diana import`: rules of other programs as a rule file. */
export const importCommand: Command = {
  usage: 'envoy-ratelimit|nginx|express-rate-limit FILE…',
  details: [
    '  envoy-ratelimit      YAML files of the service: domain and descriptors',
    '  nginx                configurations with limit_req and limit_conn; what nginx -T prints has all included files',
    '  express-rate-limit   programs in JavaScript or TypeScript that call rateLimit({ … }); they are read, not run',
    '',
    'Several files become one rule file, which is printed; what could not be converted is printed as warnings.',
  ],
  options: {},
  async run({ words }, terminal) {
    const [name, ...files] = words
    if (name === undefined || !Object.hasOwn(kinds, name)) {
      throw new CliError(2, `say what to import: ${Object.keys(kinds).join(', ')}`)
    }
    if (files.length === 0) throw new CliError(2, 'say which file to import')
    const kind = kinds[name]!
    const ids = new Set<string>()
    const rules: object[] = []
    for (const file of files) {
      const { rules: more, warnings } = convert(kind, file, await read(file), ids)
      rules.push(...more)
      for (const warning of warnings) terminal.printError(`warning: ${file}: ${warning}`)
    }
    if (rules.length === 0) throw new CliError(1, 'these files have no limits')
    for (const note of kind.notes) terminal.print(note)
    terminal.print('# To count in Redis for several servers, add store: { redis: redis://127.0.0.1:6379 }.')
    terminal.print(stringify({ rules, ...kind.sections }).trimEnd())
    return 0
  },
}

function convert(kind: Kind, file: string, text: string, ids: Set<string>): Converted {
  try {
    return kind.read(text, ids)
  } catch (error) {
    throw new CliError(1, `${file}: ${(error as Error).message}`)
  }
}

async function read(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError(1, `${file}: cannot be read (${error.code}); check the path`)
  })
  if (text.length > largestFile) throw new CliError(1, `${file}: is larger than ${largestFile} bytes`)
  return text
}

function parseYaml(text: string): unknown {
  try {
    return parse(text)
  } catch (error) {
    throw new Error(`is not YAML: ${(error as Error).message.split('\n')[0]}`, { cause: error })
  }
}
