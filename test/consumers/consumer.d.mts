export interface Resolution {
  readonly title: string
  readonly extension: string
  readonly options: object
}

export class Consumer {
  readonly folder: string
  readonly ruleFile: string
  readonly tarball: string
  static create(
    folder: string,
    settings: { readonly tarball: string; readonly modules: string; readonly links: readonly string[] },
  ): Promise<Consumer>
  path(name: string): string
  run(name: string, ...args: readonly string[]): Promise<string>
  node(args: readonly string[], cwd?: string): Promise<{ readonly code: number; readonly output: string }>
  compilePrograms(compiler: string, paths: readonly string[]): Promise<string>
  compile(compiler: string, extension: string, options: object): Promise<string>
}

export const runtimeLinks: readonly string[]
export const frameworkLinks: readonly string[]
export const typeLinks: readonly string[]
export const resolutions: readonly Resolution[]
export const moreResolutions: readonly Resolution[]
export const MOST_DISK_BYTES: number
export function diskBytes(path: string): number
