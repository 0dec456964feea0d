export function luaModules(): { readonly folder: string; readonly path: string; readonly text: string }[]
