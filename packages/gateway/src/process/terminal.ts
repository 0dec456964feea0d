/** 0 fine, 1 the answer is no, 2 the command was used wrongly. */
export type ExitCode = 0 | 1 | 2

/** The place where a command reads and writes. */
export interface Terminal {
  readonly input: AsyncIterable<string | Uint8Array>
  /** True if results are shown on a screen, which can be cleared; in a pipe or a file they are plain lines. */
  readonly isScreen?: boolean | undefined
  /** The size of the screen, asked each time; undefined if it is not known. */
  readonly size?: (() => { readonly columns: number; readonly rows: number } | undefined) | undefined
  /** True if the screen shows colors. */
  readonly hasColors?: boolean | undefined
  /** Reports each key that is pressed, until the function that it returns is called; undefined if there is no keyboard. */
  readonly onKey?: ((listener: (key: string) => void) => () => void) | undefined
  /** Results, a line at a time. */
  print(line: string): void
  /** Prints an error, a line at a time. */
  printError(line: string): void
}

/** Ends a command with one sentence for a person. */
export class CliError extends Error {
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}
