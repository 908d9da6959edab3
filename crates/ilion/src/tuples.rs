//! `for_tuples`: calls a macro for tuples of one to twelve values, with a type parameter and an index for each value.

macro_rules! for_tuples {
    ($each:ident) => {
        for_tuples!($each: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11;);
    };
    ($each:ident: ; $($done:tt)*) => {};
    ($each:ident: $name:ident $index:tt $(, $names:ident $indexes:tt)*; $($done:tt)*) => {
        $each!($($done)* $name $index);
        for_tuples!($each: $($names $indexes),*; $($done)* $name $index,);
    };
}

pub(crate) use for_tuples;
