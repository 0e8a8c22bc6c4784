// A type as its JSON: members of string enums are their texts. All keys are optional here, but none may be added.
export type Json<T> = T extends string ? `${T}` : T extends (infer U)[] ? Json<U>[] : T extends object ? { [K in keyof T]?: Json<T[K]> } : T;
