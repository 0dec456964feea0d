import type { PackedPackage } from './pack.mjs'

interface Shared {
  readonly root: string
  readonly folders: readonly string[]
  print(line: string): void
  readonly parts: {
    build(): Promise<void>
    pack(): Promise<Pick<PackedPackage, 'name' | 'tarball'>[]>
    check(tarball: string): Promise<string[]>
  }
}

export function release(
  settings: Shared & {
    readonly step: string
    readonly date: string
    readonly isDryRun: boolean
    readonly repository?: string | undefined
  },
): Promise<void>
export function packTagged(settings: Shared & { readonly tag: string }): Promise<void>
