import type { ParseArgsConfig } from 'node:util'
import type { ExitCode, Terminal } from '../process/terminal.ts'

/** The words that were written behind a command's name. */
export interface Arguments {
  readonly words: readonly string[]
  readonly options: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>
}

/** One command of `diana`; `commands.ts` has its name. */
export interface Command {
  /** The words that may stand behind its name. */
  readonly usage: string
  /** The lines that `--help` adds. */
  readonly details: readonly string[]
  readonly options: NonNullable<ParseArgsConfig['options']>
  run(args: Arguments, terminal: Terminal): Promise<ExitCode>
}
