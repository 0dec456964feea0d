import type { PackedPackage } from './pack.mjs'

export function release(settings: {
  readonly root: string
  readonly step: string
  readonly date: string
  readonly isDryRun: boolean
  readonly repository?: string | undefined
  readonly folders: readonly string[]
  print(line: string): void
  readonly parts: {
    build(): Promise<void>
    pack(): Promise<Pick<PackedPackage, 'name' | 'tarball'>[]>
    check(tarball: string): Promise<string[]>
  }
}): Promise<void>
