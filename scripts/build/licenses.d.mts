export class Licenses {
  addAll(output: readonly object[]): void
  write(file: string): void
}
