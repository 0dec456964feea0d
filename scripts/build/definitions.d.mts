export function withDefinitions(schema: object): object
export function withoutDefinitions(schema: object): object
