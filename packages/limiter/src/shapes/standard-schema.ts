/** A schema of any library, as standardschema.dev describes them. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    validate(value: unknown): StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    /** Describes the values for editors; a library may leave it out. */
    readonly jsonSchema?:
      | {
          input(options: { readonly target: 'draft-2020-12' }): Record<string, unknown>
          output(options: { readonly target: 'draft-2020-12' }): Record<string, unknown>
        }
      | undefined
  }
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
      }[]
    }
